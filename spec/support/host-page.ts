/**
 * Owns: a page of another site that includes the panel, under a policy of its own that allows no inline script or style.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Frame, Page } from 'playwright-core';

export interface HostPageOptions {
  /** Where the panel comes from; a function, because that server may start later. */
  readonly heph: () => string;
  /** More of its body. */
  readonly body?: string;
}

export class HostPage {
  readonly #server: Server;
  readonly port: number;

  private constructor(server: Server) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
  }

  static async start({ heph, body = '' }: HostPageOptions): Promise<HostPage> {
    const server = createServer((_, response) => {
      const from = new URL(heph()).origin;
      response.writeHead(200, {
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': `default-src 'none'; script-src ${from}; frame-src http:; img-src data:; base-uri 'none'`,
      });
      response.end(`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>How iron is forged</title>
        <meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">
        <script src="${from}/embed.js" data-label="Ask Hephaestus" defer></script></head>
        <body><main><h1>Forging</h1><p id="marked">Iron glows at 700 degrees.</p><p>More words.</p>${body}</main></body></html>`);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new HostPage(server);
  }

  /** The same page under two names, which are two sites to a browser. */
  origin(host: '127.0.0.1' | 'localhost' = '127.0.0.1'): string {
    return `http://${host}:${this.port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** The frame of the panel, once it is there. */
export async function panelOf(page: Page): Promise<Frame> {
  const element = await page.locator('iframe[title="Ask Hephaestus"]').elementHandle();
  const frame = await element?.contentFrame();
  if (!frame) throw new Error('the panel has no frame');
  return frame;
}

/** Marks the words of an element, as a person does with the mouse. */
export async function markWords(page: Page, selector: string): Promise<void> {
  await page.evaluate((wanted) => {
    const element = document.querySelector(wanted);
    if (element !== null) document.getSelection()?.selectAllChildren(element);
  }, selector);
}
