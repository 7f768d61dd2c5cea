/**
 * A collector of traces for specs: OTLP over HTTP with JSON bodies. It keeps what it got, byte for byte, and can hang or refuse.
 */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** null: a root. */
  readonly parentId: string | null;
  readonly name: string;
  readonly kind: number;
  readonly scope: string;
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly failed: boolean;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly links: readonly string[];
}

/** The parts of the wire that are read here. */
interface WireSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status?: { readonly code?: number };
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
  readonly links?: readonly { readonly spanId: string }[];
}
interface WireBody {
  readonly resourceSpans: readonly {
    readonly scopeSpans: readonly { readonly scope: { readonly name: string }; readonly spans: readonly WireSpan[] }[];
  }[];
}

const STATUS_ERROR = 2;

export class OtlpCollector {
  /** Everything that was sent, also what was refused. */
  readonly bodies: string[] = [];
  /** What was taken. */
  readonly spans: CollectedSpan[] = [];
  /** `hang`: takes the bytes and never answers. */
  mode: 'take' | 'hang' | 'refuse' = 'take';
  readonly #server = createServer((req, res) => {
    void read(req).then((body) => {
      this.bodies.push(body);
      if (this.mode === 'take') {
        this.spans.push(...toSpans(body));
        res.writeHead(200, { 'content-type': 'application/json' }).end('{}');
      } else if (this.mode === 'refuse') res.writeHead(500).end();
      for (const look of this.#lookers) look();
    });
  });
  readonly #lookers = new Set<() => void>();

  static async start(): Promise<OtlpCollector> {
    const collector = new OtlpCollector();
    await new Promise<void>((resolve) => collector.#server.listen(0, '127.0.0.1', resolve));
    return collector;
  }

  /** For OTEL_EXPORTER_OTLP_ENDPOINT. */
  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Resolves when what has come so far is enough. */
  until(enough: (spans: readonly CollectedSpan[], bodies: readonly string[]) => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (!enough(this.spans, this.bodies)) return;
        this.#lookers.delete(look);
        resolve();
      };
      this.#lookers.add(look);
      look();
    });
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }
}

async function read(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of req as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

function toSpans(body: string): CollectedSpan[] {
  const { resourceSpans } = JSON.parse(body) as WireBody;
  return resourceSpans.flatMap(({ scopeSpans }) =>
    scopeSpans.flatMap(({ scope, spans }) =>
      spans.map((span) => ({
        ...{ traceId: span.traceId, spanId: span.spanId, parentId: span.parentSpanId || null, name: span.name, kind: span.kind },
        ...{ scope: scope.name, startNs: BigInt(span.startTimeUnixNano), endNs: BigInt(span.endTimeUnixNano) },
        failed: span.status?.code === STATUS_ERROR,
        attributes: Object.fromEntries(span.attributes.map(({ key, value }) => [key, plain(value)])),
        links: (span.links ?? []).map(({ spanId }) => spanId),
      })),
    ),
  );
}

function plain(value: Readonly<Record<string, unknown>>): unknown {
  const [kind = '', held] = Object.entries(value)[0] ?? [];
  return kind === 'intValue' ? Number(held) : held;
}
