/**
 * Owns: the scenario `context`: what a long conversation costs where a turn and a reader touch it, beside a short one: the context of a turn,
 * the activation of its actor, the first page. Times, and the pages of 8 KiB that PostgreSQL touched (EXPLAIN, BUFFERS).
 */
import { explain } from '../db/bench/explain.ts';
import { BenchRows, type Owner } from '../db/bench/rows.ts';
import { loadConversation } from '../db/ledger/conversation.ts';
import type { Database } from '../db/pool.ts';
import { readPage } from '../db/web/read-entries.ts';
import { buildContext } from '../src/context/build.ts';
import { ContextRegistry } from '../src/context/registry.ts';
import { conversationSource } from '../src/context/sources/conversation/source.ts';
import type { ConversationId, RunId } from '../src/kernel/ids.ts';
import { silentLog } from '../src/kernel/log.ts';
import { measureActivations, openBenchDatabase } from './support/activation.ts';
import { nowMs } from './support/clock.ts';
import { type Figure, type FigureGroup, median, percentile, type Report, type ScenarioOptions } from './support/figures.ts';
import { type BenchPostgres, startPostgres } from './support/postgres.ts';

const SHORT_ENTRIES = 100;
const LONG_ENTRIES = 10_000;
const FULL = { unitInserts: 1_000, samples: 300 };
const QUICK = { unitInserts: 300, samples: 60 };
const WARM_UP = 20;
/** A long conversation may cost at most so many times a short one. */
const RATIO_MAX = 2;
const PAGE_ENTRIES = 50;
/** The document that reads most rows. */
const registryOf = (db: Database) => new ContextRegistry({ sources: [conversationSource(db)], log: silentLog });

interface Talk extends Owner {
  readonly conversationId: ConversationId;
  readonly runId: RunId;
}

export async function context({ quick, say }: ScenarioOptions): Promise<Report> {
  const size = quick ? QUICK : FULL;
  say('starting PostgreSQL');
  const postgres = await startPostgres();
  const rows = await BenchRows.open(postgres.url);
  const db = await openBenchDatabase(postgres.url);
  try {
    const unitMs = median(await rows.unitInserts(size.unitInserts));
    say(`conversations of ${SHORT_ENTRIES} and ${LONG_ENTRIES} entries`);
    const [short, long] = [await talk(rows, SHORT_ENTRIES, true), await talk(rows, LONG_ENTRIES, true)];
    const whole = [await talk(rows, SHORT_ENTRIES, false), await talk(rows, LONG_ENTRIES, false)] as const;
    await rows.analyze();
    await rows.vacuum();
    say('context, first page, activation');
    const pair = { db, samples: size.samples };
    const groups = [
      await group('Context of a turn, after a summary', { ...pair, work: readContext, short, long, target: true }),
      await group('First page', { ...pair, work: readFirstPage, short, long, target: true }),
      await activation(postgres, { short, long, samples: size.samples }),
      await explained('Load of a conversation actor', { ...pair, work: load, short, long, target: true }),
      await group('Context of a turn without any summary (every entry is read)', {
        ...{ ...pair, work: readContext, short: whole[0], long: whole[1], target: false },
      }),
    ];
    return { unitMs, groups, notes: NOTES, environment: { postgres: await rows.serverVersion(), embedded: postgres.embedded } };
  } finally {
    await db.close();
    await rows.close();
    await postgres.stop();
  }
}

const NOTES = [
  `short has ${SHORT_ENTRIES} entries, long ${LONG_ENTRIES}; each has one more turn and a question that is asked now.`,
  'pages: of 8 KiB, in the cache or not, of all statements of one read.',
];

async function talk(rows: BenchRows, entries: number, summary: boolean): Promise<Talk> {
  const owner = await rows.owner();
  const { conversationId } = await rows.filled(owner, entries);
  return { ...owner, conversationId, runId: await rows.asked(owner, conversationId, { summary }) };
}

type Work = (db: Database, talk: Talk) => Promise<unknown>;

async function readContext(db: Database, { runId }: Talk): Promise<void> {
  const built = await buildContext(db, runId, { assistantName: 'Bench', registry: registryOf(db) });
  if (built === null || built === 'too-long') throw new Error('there is no context');
}

const readFirstPage: Work = (db, talk) => readPage(db, talk, { conversationId: talk.conversationId, before: null, limit: PAGE_ENTRIES });
const load: Work = (db, { conversationId }) => loadConversation(db, conversationId);

interface Pair {
  readonly db: Database;
  readonly work: Work;
  readonly short: Talk;
  readonly long: Talk;
  readonly samples: number;
  /** Whether the long one should cost about as much as the short one. */
  readonly target: boolean;
}

function ratio(name: string, { short, long, target }: { short: number; long: number; target: boolean }): Figure {
  const aim = target ? { target: { atMost: RATIO_MAX, text: `<= ${RATIO_MAX}` } } : {};
  return { name, value: long / short, unit: '', ...aim };
}

async function group(title: string, pair: Pair): Promise<FigureGroup> {
  const times = { short: [] as number[], long: [] as number[] };
  for (let nth = -WARM_UP; nth < pair.samples; nth++) {
    for (const which of ['short', 'long'] as const) {
      const startedMs = nowMs();
      await pair.work(pair.db, pair[which]);
      if (nth >= 0) times[which].push(nowMs() - startedMs);
    }
  }
  const { figures } = await explained(title, pair);
  return { title, figures: [...timeFigures(times, pair.target), ...figures] };
}

function timeFigures({ short, long }: { short: readonly number[]; long: readonly number[] }, target: boolean): Figure[] {
  return [
    { name: 'short, p50', value: median(short), unit: 'ms' },
    { name: 'long, p50', value: median(long), unit: 'ms' },
    { name: 'long, p99', value: percentile(long, 0.99), unit: 'ms' },
    ratio('long / short, p50', { short: median(short), long: median(long), target }),
  ];
}

async function explained(title: string, { db, work, short, long, target }: Pair): Promise<FigureGroup> {
  const pagesOf = async (one: Talk): Promise<number> => {
    const statements = await explain(db, (watched) => work(watched as Database, one));
    return statements.reduce((sum, { pages }) => sum + pages, 0);
  };
  const [few, many] = [await pagesOf(short), await pagesOf(long)];
  return {
    title,
    figures: [
      { name: 'pages, short', value: few, unit: '' },
      { name: 'pages, long', value: many, unit: '' },
      ratio('pages, long / short', { short: few, long: many, target }),
    ],
  };
}

async function activation(
  { url }: BenchPostgres,
  { short, long, samples }: Pick<Pair, 'short' | 'long' | 'samples'>,
): Promise<FigureGroup> {
  const [few = [], many = []] = await measureActivations(url, [short.conversationId, long.conversationId], samples);
  return { title: 'Activation of a conversation actor', figures: timeFigures({ short: few, long: many }, true) };
}
