/**
 * Owns: the chat page as a person uses it: where things are, and what the conversation says, as lines that a spec can compare.
 * Does not own: the browser (browser.ts), the server behind it (chat-server.ts).
 */
import { expect } from 'chai';
import type { BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { type Browsing, shoot } from './browser.ts';

interface Reading {
  /** The question to begin with; null: the whole conversation. */
  readonly from: string | null;
  /** Spaces and line ends count as one space. For formatted text. */
  readonly loosely: boolean;
  /** JSON of the lines that are waited for. */
  readonly wanted: string | null;
}

/** Runs in the page: the conversation, or whether it is the wanted one. */
function readTranscript({ from, loosely, wanted }: Reading): string[] | boolean {
  const loose = (line: string) => (loosely ? line.replaceAll(/[ \n]+/g, ' ').trim() : line);
  const words = (element: Element, selector: string) => [...element.querySelectorAll(selector)].map((found) => found.textContent).join('');
  const lineOf = (message: Element): string => {
    if (message.classList.contains('question')) {
      const status = words(message, '.status');
      return `question: ${words(message, '.bubble')}${status === '' ? '' : ` [${status}]`}`;
    }
    if (message.classList.contains('failure')) return `failure: ${words(message, 'p')}`;
    const phase = message.querySelector('.stage') !== null ? 'answering' : words(message, '.chip').toLowerCase();
    return `${phase || 'answer'}: ${words(message, '.markdown, .plain-text')}`;
  };
  const lines = [...document.querySelectorAll('.message')].map((message) => loose(lineOf(message)));
  const first = loose(`question: ${from}`);
  const start = from === null ? 0 : lines.findIndex((line) => line === first || line.startsWith(`${first} [`));
  const part = start < 0 ? [] : lines.slice(start);
  return wanted === null ? part : JSON.stringify(part) === wanted;
}

export class ChatPage {
  readonly page: Page;
  readonly composer: Locator;
  readonly send: Locator;
  readonly stop: Locator;
  /** What stands above the conversation: connection, demo model, warnings. */
  readonly notices: Locator;
  readonly menu: Locator;

  private constructor(page: Page) {
    this.page = page;
    this.composer = page.locator('#composer-input');
    this.send = page.getByRole('button', { name: 'Send', exact: true });
    this.stop = page.getByRole('button', { name: 'Stop', exact: true });
    this.notices = page.getByRole('region', { name: 'Notices' });
    this.menu = page.getByRole('button', { name: 'Menu', exact: true });
  }

  /** Opens the page and waits for its conversation. */
  static async open(
    browsing: Browsing,
    url: string,
    options: BrowserContextOptions & { context?: BrowserContext } = {},
  ): Promise<ChatPage> {
    const chat = new ChatPage(await browsing.open(url, options));
    await chat.ready();
    return chat;
  }

  /** The conversation has been read and the composer is there. */
  async ready(): Promise<void> {
    await this.page.locator('main.scroller[aria-busy="false"]').waitFor();
    await this.composer.waitFor();
  }

  async reload(): Promise<void> {
    await this.page.reload();
    await this.ready();
  }

  async ask(text: string): Promise<void> {
    await this.composer.fill(text);
    await this.composer.press('Enter');
  }

  /** The question with these words, with what belongs to it. */
  question(text: string): Locator {
    return this.page.locator('.message.question', { hasText: text });
  }

  /** The answer to the question with these words, complete; waits for it. */
  async answerTo(question: string): Promise<Locator> {
    const answer = this.question(question).last().locator('xpath=following-sibling::article[1][contains(@class, "answer")]');
    await answer.locator('.meta time').waitFor();
    return answer;
  }

  /** The button of this name below a question. */
  actionOf(question: string, name: string): Locator {
    return this.question(question).getByRole('button', { name });
  }

  /**
   * The conversation from this question on (from its beginning with null): `question: …` with its state in brackets, `answering: …`,
   * `answer: …`, `stopped: …`, `failure: …`.
   */
  async transcript(from: string | null, loosely = false): Promise<string[]> {
    return (await this.page.evaluate(readTranscript, { from, loosely, wanted: null })) as string[];
  }

  /** Waits until the conversation from the first question on is exactly this; `loosely`: but for spaces and line ends. */
  async shows(lines: readonly string[], how: { loosely: boolean } = { loosely: false }): Promise<void> {
    const wanted = how.loosely ? lines.map((line) => line.replaceAll(/[ \n]+/g, ' ').trim()) : lines;
    const from = (lines[0] ?? '').replace(/^question: /, '').replace(/ \[[^\]]*\]$/, '');
    // A wait that ends without success says less than the comparison.
    await this.page.waitForFunction(readTranscript, { from, ...how, wanted: JSON.stringify(wanted) }).catch(() => undefined);
    expect(await this.transcript(from, how.loosely)).to.deep.equal(wanted);
  }

  /** How many messages say this, question or answer. */
  async count(text: string): Promise<number> {
    return this.page.locator('.message', { hasText: text }).count();
  }

  /** The person turns to another window, or comes back to this one. */
  async look(how: 'away' | 'here'): Promise<void> {
    await this.page.evaluate((here) => {
      document.hasFocus = () => here;
      dispatchEvent(new Event(here ? 'focus' : 'blur'));
    }, how === 'here');
  }

  /** Waits until the tab's title is this. */
  async hasTitle(title: RegExp): Promise<void> {
    await this.page.waitForFunction((source) => new RegExp(source).test(document.title), title.source).catch(() => undefined);
    expect(await this.page.title()).to.match(title);
  }

  /** Writes a picture of the page as it is; see spec/web/README.md. */
  async shoot(name: string): Promise<void> {
    await shoot(this.page, name);
  }
}
