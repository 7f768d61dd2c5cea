/**
 * Owns: the server's half of a web socket for fakes: the handshake and small frames, no extensions. What a client masks is unmasked.
 */
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const BINARY = 0x2;
const CLOSE = 0x8;

export class FakeWebSocket {
  readonly #socket: Duplex;
  #bytes = Buffer.alloc(0);

  /** Takes the upgrade. `hear` gets each binary message. */
  constructor(request: IncomingMessage, socket: Duplex, hear: (message: Buffer) => void) {
    this.#socket = socket;
    const key = createHash('sha1').update(`${request.headers['sec-websocket-key']}${GUID}`).digest('base64');
    const protocol = request.headers['sec-websocket-protocol']?.split(',')[1]?.trim() ?? '';
    socket.write(
      ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade', `Sec-WebSocket-Accept: ${key}`].join('\r\n') +
        `\r\nSec-WebSocket-Protocol: ${protocol}\r\n\r\n`,
    );
    socket.on('error', () => undefined); // the client may hang up at any time
    socket.on('data', (chunk: Buffer) => {
      this.#bytes = Buffer.concat([this.#bytes, chunk]);
      for (let frame = this.#take(); frame !== null; frame = this.#take()) {
        if (frame.opcode === CLOSE) socket.end();
        else if (frame.opcode === BINARY) hear(frame.payload);
      }
    });
  }

  send(payload: Buffer): void {
    this.#socket.write(Buffer.concat([frameHead(BINARY, payload.length), payload]));
  }

  close(): void {
    this.#socket.write(frameHead(CLOSE, 0));
    this.#socket.end();
  }

  #take(): { opcode: number; payload: Buffer } | null {
    const bytes = this.#bytes;
    if (bytes.length < 2) return null;
    const [first = 0, second = 0] = bytes;
    const short = second & 0x7f;
    const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
    if (bytes.length < 2 + lengthBytes) return null;
    const length = lengthBytes === 0 ? short : lengthBytes === 2 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
    const maskAt = 2 + lengthBytes;
    const masked = (second & 0x80) !== 0;
    const dataAt = maskAt + (masked ? 4 : 0);
    if (bytes.length < dataAt + length) return null;
    const payload = Buffer.from(bytes.subarray(dataAt, dataAt + length));
    if (masked) for (let i = 0; i < length; i++) payload[i] = (payload[i] ?? 0) ^ (bytes[maskAt + (i % 4)] ?? 0);
    this.#bytes = bytes.subarray(dataAt + length);
    return { opcode: first & 0x0f, payload };
  }
}

function frameHead(opcode: number, length: number): Buffer {
  if (length < 126) return Buffer.from([0x80 | opcode, length]);
  const head = Buffer.from([0x80 | opcode, 126, 0, 0]);
  head.writeUInt16BE(length, 2);
  return head;
}
