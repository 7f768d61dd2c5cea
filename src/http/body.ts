/**
 * Owns: reading a body (JSON, or as it came), bounded before it is in memory. A body that is too large is not read on, and its connection is closed.
 */
import type { IncomingMessage } from 'node:http';
import type Koa from 'koa';
import { RuntimeFault } from '../kernel/faults.ts';

export interface BodyOptions {
  readonly maxBytes: number;
  /** A request without a body is `{}`. */
  readonly optional?: boolean;
}

/** The JSON object that the request carries. Throws UNSUPPORTED_MEDIA_TYPE, BODY_TOO_LARGE or BAD_JSON. */
export async function readJsonBody(ctx: Koa.Context, options: BodyOptions): Promise<Record<string, unknown>> {
  const { headers } = ctx.req;
  const empty = headers['transfer-encoding'] === undefined && (headers['content-length'] ?? '0') === '0';
  if (empty && options.optional) return {};
  requireJson(ctx);
  if (Number(headers['content-length'] ?? 0) > options.maxBytes) throw tooLarge(ctx, options.maxBytes);
  if (headers.expect?.toLowerCase() === '100-continue') ctx.res.writeContinue();
  const bytes = await collect(ctx.req, options.maxBytes);
  if (bytes === null) throw tooLarge(ctx, options.maxBytes);
  return parseObject(bytes);
}

/** The body byte for byte, for a signature or a form. Throws BODY_TOO_LARGE. */
export async function readRawBody(ctx: Koa.Context, maxBytes: number): Promise<Buffer> {
  if (Number(ctx.req.headers['content-length'] ?? 0) > maxBytes) throw tooLarge(ctx, maxBytes);
  const bytes = await collect(ctx.req, maxBytes);
  if (bytes === null) throw tooLarge(ctx, maxBytes);
  return bytes;
}

function requireJson(ctx: Koa.Context): void {
  const [mediaType = '', ...parameters] = ctx.get('content-type').toLowerCase().split(';');
  const charset = parameters.map((parameter) => parameter.trim()).find((parameter) => parameter.startsWith('charset='));
  const plain = ['', 'identity'].includes(ctx.get('content-encoding').trim().toLowerCase());
  const utf8 = charset === undefined || /^charset="?utf-?8"?$/.test(charset);
  if (mediaType.trim() === 'application/json' && plain && utf8) return;
  const text = 'Send the body as JSON in UTF-8, not compressed, with the header Content-Type: application/json.';
  throw new RuntimeFault('UNSUPPORTED_MEDIA_TYPE', text);
}

function tooLarge(ctx: Koa.Context, maxBytes: number): RuntimeFault {
  ctx.set('Connection', 'close');
  const text = `The body is larger than ${maxBytes} bytes, which is the limit. Shorten it and send it again.`;
  return new RuntimeFault('BODY_TOO_LARGE', text, { extra: { maxBytes } });
}

/** The whole body, or null when it is longer than `maxBytes`: then the rest stays unread. */
function collect(request: IncomingMessage, maxBytes: number): Promise<Buffer | null> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const settle = (finish: () => void) => {
      request.off('data', take).off('end', whole).off('error', cut).off('close', cut);
      finish();
    };
    const take = (chunk: Buffer) => {
      size += chunk.length;
      chunks.push(chunk);
      if (size > maxBytes) settle(refuse);
    };
    const refuse = () => {
      request.pause();
      resolve(null);
    };
    const whole = () => settle(() => resolve(Buffer.concat(chunks, size)));
    const cut = () => settle(() => reject(new RuntimeFault('BAD_REQUEST', 'The connection was closed before the whole body arrived.')));
    request.on('data', take).on('end', whole).on('error', cut).on('close', cut);
  });
}

function parseObject(bytes: Buffer): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new RuntimeFault('BAD_JSON', 'The body cannot be read as JSON in UTF-8. Check it and send it again.');
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new RuntimeFault('BAD_JSON', 'The body must be a JSON object. Check it and send it again.');
}
