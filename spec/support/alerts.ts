/**
 * Owns: reading deploy/alerts for specs: the alerts, the recorded names, and what is evaluated of them.
 */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { query, type Scrape } from './promql.ts';

export interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<'summary' | 'link' | 'runbook', string>>;
}

interface Rules {
  readonly groups: readonly { readonly rules: readonly (Alert | { readonly record: string; readonly expr: string })[] }[];
}

export const ALERTS_FOLDER = new URL('../../deploy/alerts/', import.meta.url);

const { groups } = parse(readFileSync(new URL('heph.yml', ALERTS_FOLDER), 'utf8')) as Rules;
const rules = groups.flatMap((group) => group.rules);

export const ALERTS: readonly Alert[] = rules.filter((rule) => 'alert' in rule);
export const RECORDED: ReadonlyMap<string, string> = new Map(rules.flatMap((rule) => ('record' in rule ? [[rule.record, rule.expr]] : [])));

/** Names of alerts whose condition holds at the newest scrape. How long it must hold (`for`) is promtool's to test. */
export function firing(scrapes: readonly Scrape[]): readonly string[] {
  return ALERTS.filter(({ expr }) => query(expr, scrapes, RECORDED).length > 0).map(({ alert }) => alert);
}
