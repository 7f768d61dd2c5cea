/**
 * Owns: the small parts of the fake cluster: its objects, what a spec breaks, and how answers and watch events are written.
 */
import type { ServerResponse } from 'node:http';

export interface FakeObject {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string;
    uid: string;
    resourceVersion: string;
    labels: Record<string, string>;
    annotations: Record<string, string>;
    [field: string]: unknown;
  };
  // biome-ignore lint/suspicious/noExplicitAny: objects of a cluster, as they come.
  spec: any;
  // biome-ignore lint/suspicious/noExplicitAny: the same.
  status: any;
}

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
}

export interface Fault {
  readonly method?: string;
  /** A part of the path, for example `sandboxclaims` or `exec`. */
  readonly path?: string;
  readonly status: number;
  readonly retryAfterS?: number;
  /** The call is done first: only its answer is lost. */
  readonly afterwards?: boolean;
  times: number;
}

/** Where the answer of a call goes whose caller never hears of it. */
export class NoResponse {
  writeHead(): this {
    return this;
  }

  end(): void {
    // Nobody reads it.
  }
}

export function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

export function refuse(response: ServerResponse, status: number, retryAfterS?: number): void {
  const more = retryAfterS === undefined ? {} : { 'retry-after': String(retryAfterS) };
  response.writeHead(status, { 'content-type': 'application/json', ...more });
  response.end(JSON.stringify({ kind: 'Status', status: 'Failure', code: status, message: 'No.' }));
}

export function write({ response, selector }: { response: ServerResponse; selector: string }, type: string, object: FakeObject): void {
  if (selects(selector, object)) response.write(`${JSON.stringify({ type, object })}\n`);
}

export function selects(selector: string | null, { metadata }: FakeObject): boolean {
  const [name = '', value = ''] = (selector ?? '').split('=');
  return !selector || metadata.labels[name] === value;
}

export function merge(into: Record<string, string>, patch: Record<string, string | null>): void {
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete into[name];
    else into[name] = value;
  }
}
