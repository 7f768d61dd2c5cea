/**
 * Owns: how a command acts: its reason, its key, its preview, and how the answer reads.
 */
import type { ActionPreview, ActionResult } from '../contract/operators.ts';
import { uuidv7 } from '../kernel/ids.ts';
import { type AdminRequest, type Given, optional, text } from './commands.ts';

export const ACT = { usage: '--reason TEXT [--preview] [--key KEY]', options: ['reason', 'key'], flags: ['preview'] } as const;

/** `place`: members of the body that say where, beside the path. */
export function act(given: Given, path: string, place: Readonly<Record<string, unknown>> = {}): AdminRequest {
  if (isPreview(given)) return { method: 'POST', path: `${path}?preview=true`, body: place, show: showAction };
  return { method: 'POST', path, body: { ...because(given), ...place }, show: showAction };
}

export const isPreview = (given: Given): boolean => given.options['preview'] === true;

/** Without `--key` a new key: then a repeat is another action. */
export function because(given: Given): { readonly reason: string; readonly idempotencyKey: string } {
  return { reason: text(given, 'reason'), idempotencyKey: optional(given, 'key') ?? uuidv7() };
}

/** What an action answers: the preview's sentence, or what was so before and is now. */
export function showAction(answer: unknown): string {
  if ('effect' in (answer as object)) {
    const { allowed, effect } = answer as ActionPreview;
    return `${allowed ? 'It would be done' : 'It would be refused'}: ${effect}\n`;
  }
  const { action, target, before, after, repeated } = answer as ActionResult;
  const said = (note: object | null) =>
    Object.entries(note ?? {})
      .map(([name, value]) => `${name}=${value ?? '-'}`)
      .join(' ');
  return `${action} ${target}${repeated ? ' (done before with this key)' : ''}\n  before: ${said(before)}\n  after:  ${said(after)}\n`;
}
