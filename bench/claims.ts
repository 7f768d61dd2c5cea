/**
 * Owns: the scenario `claims`: how long the claim statement takes beside 1,000 queued turns, and beside none: a claim that finds no free slot,
 * and the way from a slot's release to the next turn's grant.
 */
import { availableParallelism } from 'node:os';
import { BenchRows } from '../db/bench/rows.ts';
import { claimTurns, type Grant, type Offer } from '../db/ledger/claim.ts';
import { loadConversation } from '../db/ledger/conversation.ts';
import { endTurn } from '../db/ledger/end-turn.ts';
import { countSlots, reconcileSlots } from '../db/ledger/slots.ts';
import type { Database } from '../db/pool.ts';
import { ask, makeHost, makeMain, makePerson, makeSandbox, type Person, TIMES } from '../spec/support/ledger.ts';
import { bindModel } from '../spec/support/models.ts';
import { answer } from '../spec/support/scene.ts';
import type { HostId } from '../src/kernel/ids.ts';
import { openBenchDatabase } from './support/activation.ts';
import { type Figure, median, percentile, type Report, type ScenarioOptions } from './support/figures.ts';
import { startPostgres } from './support/postgres.ts';

const CAPACITY = 4;
const QUEUED_EACH = 5;
/** Pulls that one server offers at once at most. */
const OFFERS_MAX = 200;

interface Size {
  readonly conversations: number;
  readonly claims: number;
  readonly unitInserts: number;
}
const FULL: Size = { conversations: 200, claims: 200, unitInserts: 1_000 };
const QUICK: Size = { conversations: 200, claims: 40, unitInserts: 300 };

interface Crowd {
  readonly hostId: HostId;
  readonly offers: readonly Offer[];
}

export async function claims({ quick, say }: ScenarioOptions): Promise<Report> {
  const size = quick ? QUICK : FULL;
  say('starting PostgreSQL');
  const postgres = await startPostgres();
  const rows = await BenchRows.open(postgres.url);
  const db = await openBenchDatabase(postgres.url);
  try {
    const before = await rows.unitInserts(size.unitInserts / 2);
    await bindModel(db);
    await reconcileSlots(db, CAPACITY);
    say('beside nobody');
    const few = await measure(db, { ...size, conversations: CAPACITY + 1 }, rows);
    say(`beside ${size.conversations * QUEUED_EACH} queued turns in ${size.conversations} conversations`);
    const many = await measure(db, size, rows);
    const after = await rows.unitInserts(size.unitInserts / 2);
    const groups = [
      { title: `${(CAPACITY + 1) * QUEUED_EACH} queued turns`, figures: few },
      {
        title: `${size.conversations * QUEUED_EACH} queued turns more, ${Math.min(OFFERS_MAX, size.conversations)} pulls in each claim`,
        figures: many,
      },
    ];
    const notes = ['The statements alone, through the pool of a server; each grant is followed by the end of the oldest running turn.'];
    return {
      unitMs: median([...before, ...after]),
      groups,
      notes,
      environment: { postgres: await rows.serverVersion(), cores: availableParallelism() },
    };
  } finally {
    await db.close();
    await rows.close();
    await postgres.stop();
  }
}

/** One workspace, many people, each with a sandbox that waits. */
async function crowd(db: Database, conversations: number): Promise<Crowd> {
  const hostId = await makeHost(db);
  const offers: Offer[] = [];
  let first: Person | undefined;
  for (let nth = 0; nth < conversations; nth++) {
    const person = await makePerson(db, first?.workspaceId);
    first ??= person;
    const conversationId = await makeMain(db, person);
    for (let n = 0; n < QUEUED_EACH; n++) await ask(db, person, conversationId);
    offers.push({ conversationId, sandboxId: (await makeSandbox(db, person, conversationId, hostId)).id });
  }
  return { hostId, offers };
}

async function measure(db: Database, { conversations, claims: count }: Size, rows: BenchRows): Promise<Figure[]> {
  const { hostId, offers } = await crowd(db, conversations);
  await rows.analyze();
  const claim = async (from: readonly Offer[]): Promise<[grants: readonly Grant[], ms: number]> => {
    const startedMs = performance.now();
    const { grants } = await claimTurns(db, { hostId, offers: from }, TIMES);
    return [grants, performance.now() - startedMs];
  };
  const running: Grant[] = [...(await claim(offers))[0]];
  const waits: number[] = [];
  const grants: number[] = [];
  for (let nth = 0; nth < count; nth++) {
    waits.push((await claim(offers))[1]);
    const oldest = running.shift();
    if (!oldest) break; // fewer turns than claims
    await end(db, oldest);
    const [granted, ms] = await claim(offers);
    if (granted.length === 0) break;
    running.push(...granted);
    grants.push(ms);
  }
  for (const grant of running) await end(db, grant);
  if ((await countSlots(db)).held !== 0) throw new Error('a slot is held by nobody');
  return [
    { name: 'claim without a free slot, p50', value: median(waits), unit: 'ms' },
    { name: 'claim without a free slot, p99', value: percentile(waits, 0.99), unit: 'ms' },
    { name: 'claim that grants one turn, p50', value: median(grants), unit: 'ms' },
    { name: 'claim that grants one turn, p99', value: percentile(grants, 0.99), unit: 'ms' },
  ];
}

async function end(db: Database, { runId, epoch, sandboxId, conversationId }: Grant): Promise<void> {
  const version = (await loadConversation(db, conversationId))?.version ?? -1;
  await endTurn(db, { runId, epoch, sandboxId, conversationId, version, status: 'DONE', error: null, entries: [answer()] });
}
