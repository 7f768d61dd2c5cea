/**
 * Owns: event streams that break on their way to the page: at any byte, inside of a character, between CR and LF. Stands between the page and
 * a real server, like a proxy that also ends lines in its own way and passes bytes on in pieces of any size.
 * Does not own: what the server sends, or what the page makes of it.
 */

/** Where a connection breaks. */
export const CUT_KINDS = ['at any byte', 'inside of a character', 'between CR and LF'] as const;
export type CutKind = (typeof CUT_KINDS)[number];

const LINE_ENDS = ['\n', '\r\n', '\r'] as const;
const [CR, LF] = [0x0d, 0x0a];
/** Longest piece that is passed on at once, so that a character may come in two pieces also where nothing is cut. */
const PIECE_MAX_BYTES = 700;

export interface CutterPorts {
  /** 0 up to 1. */
  random(): number;
  /** After how many bytes the next connection breaks, or soon after them where its kind of cut is possible; null: it holds. */
  nextCutBytes(): number | null;
  onCut(): void;
}

interface Plan {
  readonly lineEnd: Buffer;
  readonly kind: CutKind;
  /** Bytes that pass at least; null: all. */
  readonly fromBytes: number | null;
}

export class StreamCutter {
  readonly cuts: Record<CutKind, number> = { 'at any byte': 0, 'inside of a character': 0, 'between CR and LF': 0 };
  readonly #ports: CutterPorts;

  constructor(ports: CutterPorts) {
    this.#ports = ports;
  }

  get count(): number {
    return CUT_KINDS.reduce((sum, kind) => sum + this.cuts[kind], 0);
  }

  /** `fetch` of a stream that breaks. */
  async fetch(url: string, init: RequestInit): Promise<Response> {
    const hangUp = new AbortController();
    const signal = init.signal ? AbortSignal.any([hangUp.signal, init.signal]) : hangUp.signal;
    const response = await fetch(url, { ...init, signal });
    if (!response.ok || response.body === null) return response;
    return new Response(this.#cut(response.body, hangUp), { status: response.status, headers: response.headers });
  }

  #plan(): Plan {
    const { random, nextCutBytes } = this.#ports;
    const kind = CUT_KINDS[Math.floor(random() * CUT_KINDS.length)] ?? 'at any byte';
    const lineEnd = kind === 'between CR and LF' ? '\r\n' : (LINE_ENDS[Math.floor(random() * LINE_ENDS.length)] ?? '\n');
    return { lineEnd: Buffer.from(lineEnd), kind, fromBytes: nextCutBytes() };
  }

  /** One piece for each read, so that nothing that has passed is lost when the stream breaks. */
  #cut(body: ReadableStream<Uint8Array>, hangUp: AbortController): ReadableStream<Uint8Array> {
    const plan = this.#plan();
    const reader = body.getReader();
    const pieces: Buffer[] = [];
    let passed = 0;
    let broken = false;
    const more = async (): Promise<boolean> => {
      const { done, value } = await reader.read();
      if (done) return false;
      const bytes = withLineEnds(value, plan.lineEnd);
      const end = cutIn(bytes, plan, passed);
      broken = end !== null;
      passed += end ?? bytes.length;
      for (let left = bytes.subarray(0, end ?? bytes.length); left.length > 0; ) {
        const size = 1 + Math.floor(this.#ports.random() * PIECE_MAX_BYTES);
        pieces.push(left.subarray(0, size));
        left = left.subarray(size);
      }
      return true;
    };
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
      while (pieces.length === 0 && !broken) if (!(await more())) return controller.close();
      const piece = pieces.shift();
      if (piece) return controller.enqueue(piece);
      hangUp.abort();
      controller.error(new Error('the stream was cut'));
      this.cuts[plan.kind] += 1;
      this.#ports.onCut();
    };
    return new ReadableStream({ pull, cancel: () => hangUp.abort() }, { highWaterMark: 0 });
  }
}

/** Our server ends each line with LF, and its data has no other: it is JSON. */
function withLineEnds(bytes: Uint8Array, lineEnd: Buffer): Buffer {
  const parts: Buffer[] = [];
  let from = 0;
  for (let at = bytes.indexOf(LF); at >= 0; at = bytes.indexOf(LF, from)) {
    parts.push(Buffer.from(bytes.subarray(from, at)), lineEnd);
    from = at + 1;
  }
  parts.push(Buffer.from(bytes.subarray(from)));
  return Buffer.concat(parts);
}

/** How many of these bytes pass before the break; null: all of them, and the stream goes on. `passed`: bytes before them. */
function cutIn(bytes: Buffer, { kind, fromBytes }: Plan, passed: number): number | null {
  if (fromBytes === null) return null;
  for (let at = Math.max(0, fromBytes - passed); at < bytes.length; at++) {
    const isContinuation = ((bytes[at] ?? 0) & 0xc0) === 0x80;
    if (kind === 'at any byte' || (kind === 'inside of a character' ? isContinuation : bytes[at - 1] === CR)) return at;
  }
  return null;
}
