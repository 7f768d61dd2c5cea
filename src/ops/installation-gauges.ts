/**
 * Owns: gauges of the whole installation, read from the database at a scrape. Every server tells the same numbers: take their maximum.
 */
import { Gauge, type Registry } from 'prom-client';
import type { LoadRow } from '../../db/ops/overview.ts';
import { STUCK_RULES } from '../contract/operators.ts';

export interface InstallationLoad {
  readonly load: LoadRow;
  readonly stuck: readonly { readonly name: string; readonly count: number }[];
  /** Pauses of claims, the installation's and those of workspaces. */
  readonly pauses: number;
  readonly monthCost: number;
}

interface Reading<L extends string> {
  readonly help: string;
  readonly labels?: readonly L[];
  readonly set: (gauge: Gauge<L>, load: InstallationLoad) => void;
}

const MS_PER_S = 1_000;

export function registerInstallationGauges(registry: Registry, read: () => Promise<InstallationLoad>): void {
  const once = shared(read);
  const gauge = <L extends string>(name: string, { help, labels = [], set }: Reading<L>) => {
    new Gauge<L>({
      ...{ name, help, labelNames: [...labels], registers: [registry] },
      async collect() {
        this.reset();
        // Without the database nobody knows them: a gauge with labels is empty, one without is NaN.
        const load = await once().catch(() => null);
        if (load) set(this, load);
        else if (labels.length === 0) this.set(Number.NaN);
      },
    });
  };
  gauge('heph_slots', {
    ...{ help: 'Slots of the installation by state.', labels: ['state'] },
    set(to, { load }) {
      to.set({ state: 'free' }, load.slots_free);
      to.set({ state: 'held' }, load.slots_held);
      to.set({ state: 'retiring' }, load.slots_retiring);
    },
  });
  gauge('heph_turns_open', {
    ...{ help: 'Turns of the installation that have not ended, by state.', labels: ['state'] },
    set(to, { load }) {
      for (const state of ['running', 'stopping', 'queued'] as const) to.set({ state }, load[state]);
    },
  });
  gauge('heph_turns_stuck', {
    ...{ help: 'Turns that are stuck, by the rule that says so.', labels: ['rule'] },
    set(to, { stuck }) {
      for (const rule of STUCK_RULES) to.set({ rule }, stuck.find(({ name }) => name === rule)?.count ?? 0);
    },
  });
  gauge('heph_turn_oldest_wait_seconds', {
    help: 'Age of the oldest turn that waits; 0 when none does.',
    set: (to, { load }) => to.set((load.oldest_waiting_ms ?? 0) / MS_PER_S),
  });
  gauge('heph_claim_pauses', { help: 'Pauses of claims by operators.', set: (to, { pauses }) => to.set(pauses) });
  gauge('heph_model_cost_month', {
    help: 'What model calls cost in this calendar month (UTC), in the currency of the installation.',
    set: (to, { monthCost }) => to.set(monthCost),
  });
}

/** Readers that ask while a read is under way share it: one read for one scrape. */
function shared<T>(read: () => Promise<T>): () => Promise<T> {
  let underWay: Promise<T> | null = null;
  return () => {
    underWay ??= read().finally(() => {
      underWay = null;
    });
    return underWay;
  };
}
