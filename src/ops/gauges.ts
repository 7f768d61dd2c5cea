/**
 * Owns: metrics that are read when somebody scrapes: sizes and states that other parts know anyway.
 */
import { Counter, Gauge, type Registry } from 'prom-client';
import type { ActorView, RunnerView } from '../../actors/index.ts';
import { CALL_OUTCOMES } from '../../db/gateway/close-calls.ts';
import { type InstallationLoad, registerInstallationGauges } from './installation-gauges.ts';

/** Where the numbers come from. Each is called at a scrape; what one that throws would have said is left out, or NaN. */
export interface GaugeSources {
  readonly actors: () => readonly ActorView[];
  readonly runners: () => readonly RunnerView[];
  readonly database: () => { readonly inUse: number; readonly waiting: number };
  readonly slots: () => Promise<{ readonly total: number; readonly held: number; readonly retiring: number }>;
  readonly installation: () => Promise<InstallationLoad>;
  readonly streams: () => number;
  /** Words of other servers arrive (LISTEN). */
  readonly listening: () => boolean;
  readonly partials: () => { readonly turns: number; readonly bytes: number };
  /** Absent: nothing is said in Slack. */
  readonly outbox?: () => Promise<{ readonly pending: number; readonly uncertain: number; readonly oldestAgeS: number }>;
  /** `ended`: calls by outcome since the start. */
  readonly modelCalls: () => {
    readonly inFlight: number;
    readonly closingsWaiting: number;
    readonly connectionsPaused: number;
    readonly ended: Readonly<Record<string, number>>;
  };
}

export function registerGauges(registry: Registry, sources: GaugeSources): void {
  const gauge = <L extends string>(
    name: string,
    help: string,
    read: { labels?: L[]; collect: (gauge: Gauge<L>) => void | Promise<void> },
  ) => {
    const { labels = [], collect } = read;
    new Gauge<L>({
      ...{ name, help, labelNames: labels, registers: [registry] },
      async collect() {
        this.reset();
        // A scrape tells the rest; readiness tells what is wrong.
        await Promise.try(() => collect(this)).catch(() => labels.length === 0 && this.set(Number.NaN));
      },
    });
  };
  gauge('heph_actors', 'Actors in memory.', { labels: ['kind', 'state'], collect: (to) => countActors(to, sources.actors()) });
  gauge('heph_actor_mailbox_depth', 'Commands that were accepted and not yet answered.', {
    labels: ['kind'],
    collect: (to) => sources.actors().forEach(({ kind, mailboxDepth }) => void to.inc({ kind }, mailboxDepth)),
  });
  gauge('heph_actor_mailbox_oldest_age_seconds', 'Age of the oldest command that waits.', {
    labels: ['kind'],
    collect: (to) => oldest(to, sources.actors()),
  });
  gauge('heph_sandboxes', 'Runners of this server.', {
    labels: ['state'],
    collect: (to) => sources.runners().forEach(({ state }) => void to.inc({ state })),
  });
  gauge('heph_db_connections_in_use', 'Connections of the pool that run a statement.', {
    collect: (to) => to.set(sources.database().inUse),
  });
  gauge('heph_db_pool_waiting', 'Callers that wait for a connection.', { collect: (to) => to.set(sources.database().waiting) });
  gauge('heph_slots_limit', 'Turns that the installation may run at once.', {
    collect: async (to) => to.set((await sources.slots()).total),
  });
  gauge('heph_slots_in_use', 'Slots that are held, retiring ones included.', {
    collect: async (to) => to.set((await sources.slots()).held),
  });
  gauge('heph_listening', 'Whether words of other servers arrive: 1, or 0 while LISTEN is away.', {
    collect: (to) => to.set(Number(sources.listening())),
  });
  gauge('heph_streams', 'Open event streams.', { collect: (to) => to.set(sources.streams()) });
  gauge('heph_partial_turns', 'Running answers in memory.', { collect: (to) => to.set(sources.partials().turns) });
  gauge('heph_partial_bytes', 'Their size in memory.', { collect: (to) => to.set(sources.partials().bytes) });
  gauge('heph_model_calls_in_flight', 'Model calls under way.', { collect: (to) => to.set(sources.modelCalls().inFlight) });
  gauge('heph_model_closings_waiting', 'Ended calls whose rows are still open.', {
    collect: (to) => to.set(sources.modelCalls().closingsWaiting),
  });
  gauge('heph_model_connections_paused', 'Connections whose breaker is not closed on this server.', {
    collect: (to) => to.set(sources.modelCalls().connectionsPaused),
  });
  registerModelCalls(registry, sources);
  registerInstallationGauges(registry, sources.installation);
  const { outbox } = sources;
  if (!outbox) return;
  gauge('heph_outbox_pending', 'Actions that are to be said, or are being said.', {
    collect: async (to) => to.set((await outbox()).pending),
  });
  gauge('heph_outbox_uncertain', 'Actions of which nobody knows whether they were said.', {
    collect: async (to) => to.set((await outbox()).uncertain),
  });
  gauge('heph_outbox_oldest_age_seconds', 'Age of the oldest action that is not settled.', {
    collect: async (to) => to.set((await outbox()).oldestAgeS),
  });
}

/** A counter that another part counts. */
function registerModelCalls(registry: Registry, sources: GaugeSources): void {
  new Counter({
    ...{ name: 'heph_model_calls_total', help: 'Model calls that have ended.', labelNames: ['outcome'], registers: [registry] },
    collect() {
      this.reset();
      const { ended } = sources.modelCalls();
      for (const outcome of CALL_OUTCOMES) this.inc({ outcome }, ended[outcome] ?? 0);
    },
  });
}

function countActors(to: Gauge<'kind' | 'state'>, actors: readonly ActorView[]): void {
  for (const { kind, state } of actors) to.inc({ kind, state });
}

function oldest(to: Gauge<'kind'>, actors: readonly ActorView[]): void {
  const ages = new Map<string, number>();
  for (const { kind, oldestWaitMs } of actors) ages.set(kind, Math.max(ages.get(kind) ?? 0, oldestWaitMs));
  for (const [kind, ageMs] of ages) to.set({ kind }, ageMs / 1_000);
}
