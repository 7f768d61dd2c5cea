/**
 * Owns: one attempt of one turn, from its context to its end: what is done in which order, and what an outcome is told as.
 * Does not own: pulling runs (serve.ts), the calls (gateway-client.ts), Pi (pi-session.ts), what a verdict is (fate.ts).
 * Rules: R5 nothing leaves after the lease is lost; R7 the end carries all entries of the attempt or none.
 */
import type { AgentRun, ContextResponse, FailureDetail, TurnEndRequest } from '../src/contract/agent.ts';
import { LIMITS } from '../src/contract/limits.ts';
import { type Clock, pause } from '../src/kernel/clock.ts';
import { errorKind } from '../src/kernel/log.ts';
import { RUNNER } from './config.ts';
import { type ContextFolder, stageContextFolder } from './context-folder.ts';
import { Fate } from './fate.ts';
import type { GatewayClient, RunClient } from './gateway-client.ts';
import { keepLease } from './lease.ts';
import { createModelFetches } from './model-fetch.ts';
import { PartialAnswer } from './partial.ts';
import { openPiSession, type PiSession } from './pi-session.ts';
import type { Protocol } from './protocol.ts';
import { withNotedResults } from './read-notes.ts';
import { answered } from './tools/ask-server.ts';
import { createTools } from './tools/index.ts';
import { cutOffEntries, finishedEntries, judge } from './transcript.ts';
import type { Transport } from './transport.ts';
import { Watcher } from './watcher.ts';

export interface TurnOptions {
  readonly gateway: GatewayClient;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly protocol: Protocol;
  readonly workDir: string;
  readonly bash: boolean;
  readonly setprivPath: string | null;
  /** Aborts when this process is asked to stop gracefully. */
  readonly drain: AbortSignal;
}

/** `usable`: this process may serve another run. `spent`: Pi did not become idle, so it must not. */
export type TurnOutcome = 'usable' | 'spent';

/** Runs one attempt. Never throws: whatever happens becomes an end, or silence when the lease is lost. */
export async function runTurn(run: AgentRun, options: TurnOptions): Promise<TurnOutcome> {
  const { clock, drain } = options;
  const fate = new Fate();
  const client = options.gateway.forRun(run, fate.lost);
  const lease = keepLease({ run, client, fate, clock });
  const handOn = (): void => fate.settle({ kind: 'handOn' });
  drain.addEventListener('abort', handOn, { once: true });
  if (drain.aborted) handOn();
  const attempt = new Attempt({ ...options, run, fate, client });
  try {
    await attempt.work();
    await attempt.tellEnd();
  } finally {
    drain.removeEventListener('abort', handOn);
    lease.stop();
    attempt.close();
  }
  return attempt.outcome;
}

interface AttemptOptions extends TurnOptions {
  readonly run: AgentRun;
  readonly fate: Fate;
  readonly client: RunClient;
}

class Attempt {
  outcome: TurnOutcome = 'usable';
  readonly #options: AttemptOptions;
  readonly #partial: PartialAnswer;
  #pi: PiSession | null = null;
  #watcher: Watcher | null = null;
  #questionId = '';
  #timeZone = 'UTC';
  /** Set when the attempt failed before Pi could judge it. */
  #failure: FailureDetail | null = null;

  constructor(options: AttemptOptions) {
    this.#options = options;
    this.#partial = new PartialAnswer(options);
  }

  /** Everything up to the last model answer. Returns early when the attempt is decided. */
  async work(): Promise<void> {
    const { client, fate, protocol, run } = this.#options;
    const context = await client.context(fate.decided);
    if (context.kind === 'refused' && fate.hearRefusal(context)) return;
    if (context.kind === 'cancelled') return;
    if (context.kind !== 'ok') {
      this.#failure = 'context_unavailable';
      return;
    }
    try {
      const pi = await this.#open(context.value);
      await this.#ask(pi, context.value.prompt);
    } catch (error) {
      this.#failure = this.#pi === null ? 'context_unavailable' : 'loop_crashed';
      protocol.log('error', 'turn_crashed', { runId: run.id, error: errorKind(error) });
    }
  }

  close(): void {
    this.#pi?.close();
  }

  async #open(context: ContextResponse): Promise<PiSession> {
    const { client, fate, transport, protocol, run, clock } = this.#options;
    this.#questionId = context.questionEntryId;
    this.#timeZone = context.timeZone;
    const folder: ContextFolder = await stageContextFolder(this.#options.workDir, context.documents, (path) => this.#fetchDocument(path));
    this.#pi = await openPiSession({
      context,
      tools: createTools({ ...this.#options, folder: () => folder, conversationId: () => context.conversationId }),
      fetches: createModelFetches({ transport, fate, clock, headers: () => client.headers() }),
      log: (level, event, fields) => protocol.log(level, event, { runId: run.id, ...fields }),
      origin: transport.origin,
    });
    return this.#pi;
  }

  async #fetchDocument(path: string): Promise<string> {
    const { client, fate } = this.#options;
    const refusal = (): string => 'There is no such document. INDEX.md and the resource fields of documents say what can be read.';
    const { content } = answered(await client.document(path, fate.decided), { fate, refusal });
    if (Buffer.byteLength(content) > LIMITS.documentMaxBytes) throw new Error('The document is too large to be read.');
    return content;
  }

  /** Asks, and aborts as soon as the attempt is decided. A Pi that does not become idle then is left behind. */
  async #ask(pi: PiSession, prompt: string): Promise<void> {
    const { fate, clock, run, protocol } = this.#options;
    this.#watcher = new Watcher({ session: pi.session, partial: this.#partial, protocol, runId: run.id, epoch: run.epoch });
    const reporting = this.#partial.start();
    const abort = (): void => void pi.session.abort();
    fate.decided.addEventListener('abort', abort, { once: true });
    try {
      if (fate.decided.aborted) return;
      const asked = this.#converse(pi, prompt).then(() => 'idle' as const);
      const late = aborted(fate.decided)
        .then(() => pause(clock, RUNNER.abortMaxMs))
        .then(() => 'stuck' as const);
      if ((await Promise.race([asked, late])) === 'stuck') {
        this.outcome = 'spent';
        asked.catch(() => undefined);
      }
    } finally {
      fate.decided.removeEventListener('abort', abort);
      reporting.stop();
    }
  }

  /** Shortens the conversation first where that is due. A conversation that stays too long gets no question. */
  async #converse(pi: PiSession, prompt: string): Promise<void> {
    const { fate } = this.#options;
    const hasRoom = await pi.makeRoom(prompt);
    if (fate.decided.aborted) return;
    if (hasRoom) await pi.ask(prompt);
    else this.#failure = 'context_overflow';
  }

  /** Says how the attempt ended; nothing at all when the lease is lost. */
  async tellEnd(): Promise<void> {
    const { fate, client, protocol, run } = this.#options;
    const { verdict } = fate;
    if (verdict?.kind === 'lost') {
      protocol.log('warn', 'turn_lost', { runId: run.id, epoch: run.epoch });
      return;
    }
    if (verdict?.kind === 'handOn') {
      await client.end({ outcome: 'HANDED_ON' });
      protocol.log('info', 'turn_handed_on', { runId: run.id, epoch: run.epoch });
      return;
    }
    await this.#send(this.#compose());
  }

  #compose(): TurnEndRequest {
    const judgement = this.#judge();
    // A Pi that is still busy may append at any moment, so its path is left alone.
    if (judgement.outcome !== 'FAILED' && this.outcome === 'usable') this.#pi?.settle();
    const carried = this.#options.fate.verdict?.kind === 'stopped' ? cutOffEntries : finishedEntries;
    return { ...judgement, entries: carried(this.#pi?.entries ?? [], this.#questionId), lastPartial: this.#partial.last() };
  }

  #judge(): Pick<TurnEndRequest, 'outcome' | 'reason' | 'detail'> {
    const { verdict } = this.#options.fate;
    if (verdict?.kind === 'stopped')
      return verdict.stop === 'developer' ? { outcome: 'STOPPED' } : { outcome: 'FAILED', reason: 'DEADLINE' };
    if (verdict?.kind === 'failed') return { outcome: 'FAILED', reason: verdict.reason, detail: verdict.detail };
    if (this.#failure !== null) return { outcome: 'FAILED', reason: 'ERROR', detail: this.#failure };
    return judge(this.#pi?.entries ?? [], this.#watcher?.overflowed ?? false);
  }

  /** Sends the end; one that the server cannot take is sent smaller, then as a failure without entries. */
  async #send(end: TurnEndRequest): Promise<void> {
    const { client, protocol, run } = this.#options;
    let sent = end;
    let result = await client.endTurn(sent);
    if (isRefused(result, 413)) {
      sent = { ...end, entries: withNotedResults(end.entries, this.#timeZone) };
      result = await client.endTurn(sent);
    }
    if (isRefused(result, 413) || isRefused(result, 400)) {
      sent = {
        outcome: 'FAILED',
        reason: 'ERROR',
        detail: isRefused(result, 413) ? 'end_too_large' : 'end_refused',
        entries: [],
        lastPartial: null,
      };
      result = await client.endTurn(sent);
    }
    // 409: an earlier try got through, or the attempt is no longer ours. Both mean that there is nothing left to say.
    const told = result.kind === 'ok' || isRefused(result, 409);
    // A run without an end would hold its slot until the reaper comes.
    if (!told && result.kind === 'refused') await client.end({ outcome: 'COMPLETED' });
    protocol.log(told ? 'info' : 'warn', 'turn_ended', {
      runId: run.id,
      outcome: sent.outcome,
      reason: sent.reason ?? null,
      detail: sent.detail ?? null,
      status: result.kind === 'refused' ? result.status : null,
      told,
    });
  }
}

function isRefused(result: { readonly kind: string; readonly status?: number }, status: number): boolean {
  return result.kind === 'refused' && result.status === status;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
