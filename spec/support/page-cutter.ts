/**
 * Owns: servers of one ledger whose event streams break at any byte: inside of a character, between CR and LF, inside of a field's name.
 * Does not own: what the page makes of it.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { WebLedger } from './page-ledger.ts';

const LINE_ENDS = ['\n', '\r\n', '\r'] as const;
/** Longest piece that is written at once, so that a character may come in two pieces also where nothing is cut. */
const PIECE_MAX_BYTES = 700;

export interface CutterPorts {
  ledger: WebLedger;
  /** 0 up to 1. */
  random(): number;
  /** After how many bytes the next connection breaks; null: it holds. */
  nextCutBytes(): number | null;
  onCut(): void;
}

/** One server. Several may serve the same ledger, as servers share a database. */
export class CuttingServer {
  readonly #ports: CutterPorts;
  readonly #http = createServer((request, response) => this.#stream(request, response));
  readonly #connections = new Set<() => void>();

  constructor(ports: CutterPorts) {
    this.#ports = ports;
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#http.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}/events`;
  }

  async close(): Promise<void> {
    this.#http.closeAllConnections();
    await new Promise((resolve) => this.#http.close(resolve));
  }

  /** Tells every connection what the ledger has logged since. */
  tell(): void {
    for (const tell of [...this.#connections]) tell();
  }

  #stream(_request: IncomingMessage, response: ServerResponse): void {
    const { ledger, random, nextCutBytes, onCut } = this.#ports;
    const end = LINE_ENDS[Math.floor(random() * LINE_ENDS.length)] ?? '\n';
    let leftBytes = nextCutBytes() ?? Number.POSITIVE_INFINITY;
    let told = ledger.log.length;
    const pieces: Buffer[] = [];
    let writing = false;
    // Each piece in a turn of its own: what is written at once would arrive as one.
    const write = () => {
      const piece = pieces.shift();
      writing = piece !== undefined;
      if (piece !== undefined) response.write(piece, () => setImmediate(write));
      else if (leftBytes <= 0) response.destroy();
    };
    const send = (event: string, data: unknown) => {
      let bytes = Buffer.from(`event: ${event}${end}data: ${JSON.stringify(data)}${end}${end}`);
      while (bytes.length > 0 && leftBytes > 0) {
        const piece = bytes.subarray(0, Math.min(leftBytes, 1 + Math.floor(random() * PIECE_MAX_BYTES)));
        bytes = bytes.subarray(piece.length);
        leftBytes -= piece.length;
        pieces.push(piece);
      }
      if (!writing) write();
    };
    const tell = () => {
      for (; told < ledger.log.length && leftBytes > 0; told++) {
        const event = ledger.log[told];
        if (event?.type === 'turn') send('turn', event.turn);
        if (event?.type === 'entry') send('entry', event.entry);
        if (event?.type === 'partial') send('partial', event.partial);
      }
    };
    this.#connections.add(tell);
    response.on('close', () => {
      this.#connections.delete(tell);
      if (leftBytes <= 0) onCut();
    });
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    send('snapshot', ledger.snapshot());
    tell();
  }
}
