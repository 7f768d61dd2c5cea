/**
 * Owns: model calls as a loop makes them, through any of the ways to the provider, and when their bytes came.
 */
import { Agent, request } from 'undici';
import { nowMs } from './clock.ts';
import type { AttemptHeaders } from './held-turns.ts';

export interface CallTimes {
  readonly firstByteMs: number;
  readonly wholeMs: number;
  readonly bytes: number;
}

export interface Way {
  readonly name: 'direct' | 'plain pipe' | 'gateway';
  /** Up to and with `/v1`. */
  readonly base: string;
}

const BODY = JSON.stringify({
  model: 'bench',
  stream: true,
  stream_options: { include_usage: true },
  messages: [{ role: 'user', content: 'How does it work? '.repeat(200) }],
});

export class StreamCalls {
  readonly #agent = new Agent({ headersTimeout: 0, bodyTimeout: 0, connections: 512 });

  async call(way: Way, attempt: AttemptHeaders): Promise<CallTimes> {
    const startedMs = nowMs();
    const response = await request(`${way.base}/chat/completions`, {
      dispatcher: this.#agent,
      method: 'POST',
      headers: { 'content-type': 'application/json', ...attempt },
      body: BODY,
    });
    let firstByteMs = Number.NaN;
    let bytes = 0;
    for await (const chunk of response.body as AsyncIterable<Buffer>) {
      if (bytes === 0) firstByteMs = nowMs() - startedMs;
      bytes += chunk.length;
    }
    if (response.statusCode !== 200) throw new Error(`${way.name} answered ${response.statusCode}`);
    return { firstByteMs, wholeMs: nowMs() - startedMs, bytes };
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }
}
