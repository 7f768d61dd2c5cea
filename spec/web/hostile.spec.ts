/**
 * Words that try to be more than words, from a person and from the model: nothing runs, nothing is fetched, nothing leaves the column.
 */
import { expect } from 'chai';
import { useBrowser } from '../support/browser.ts';
import { ChatPage } from '../support/chat-page.ts';
import { scripted, useChatServer } from '../support/chat-server.ts';
import { answer, hold, says } from '../support/model-server.ts';
import { graveFindings, liveParts, sticksOut } from '../support/page-checks.ts';

const NARROW = { viewport: { width: 360, height: 740 } } as const;

const ATTACKS = [
  '<img src=x onerror=alert(1)>',
  '[x](javascript:alert(1))',
  '<svg/onload=alert(1)>',
  '<script>alert(1)</script>',
  '<iframe srcdoc="<script>parent.alert(1)</script>"></iframe>',
  '<style>*{display:none}</style>',
  '<form action="https://collect.example"><input name=q></form>',
  '[y](data:text/html,<script>alert(1)</script>)',
  '[z](JaVaScRiPt&colon;alert(1))',
  '<javascript:alert(1)>',
  '![pixel](https://pictures.example/pixel.png?secret)',
  '![pixel][there]\n\n[there]: //pictures.example/other.png',
  '<a href="javascript:alert(1)" onclick=alert(1)>click</a>',
  '$\\href{javascript:alert(1)}{formula}$ and $\\includegraphics{https://pictures.example/tex.png}$',
  '```html\n<img src=https://pictures.example/code.png onerror=alert(1)>\n```',
] as const;

/** Fields and the end of an event stream, separators of lines and paragraphs, one glyph of seven code points, and so on. */
const ODD = [
  'data: x\n\nevent: end\ndata: [DONE]\nid: 7',
  '[DONE]',
  'before\u2028between\u2029after',
  '👩‍👩‍👧‍👦',
  'w'.repeat(1_000),
  '0',
  'constructor',
  `https://address.example/${'path/'.repeat(60)}?q=${'z'.repeat(200)}`,
  'مرحبا Heph، كيف الحال؟ (version 2.0) شكرا',
] as const;

const SUM = Array.from({ length: 60 }, (_, n) => `x_{${n}}`).join(' + ');
const WIDE = [
  `\`\`\`ts\nconst wide = '${'x'.repeat(400)}';\n\`\`\``,
  `\`${'inline-code-'.repeat(40)}\``,
  `| ${Array.from({ length: 14 }, (_, n) => `column ${n}`).join(' | ')} |\n|${'---|'.repeat(14)}\n| ${Array.from({ length: 14 }, () => 'some words').join(' | ')} |`,
  `# ${'Heading'.repeat(30)}`,
  `> ${'> '.repeat(12)}deep`,
  Array.from({ length: 12 }, (_, depth) => `${'  '.repeat(depth)}- level ${depth}`).join('\n'),
  `Inline $${SUM}$ and on its own:\n\n$$\n${SUM}\n$$`,
  `- $${SUM}$`,
].join('\n\n');

describe('hostile and odd words', function () {
  this.timeout(60_000);
  const inBrowser = useBrowser();
  const chat = useChatServer();

  it(
    'that would run or fetch something stay words, as a question and as an answer',
    inBrowser(async (browsing) => {
      const question = `Hostile? ${ATTACKS.join('\n\n')}`;
      chat.flow.model.use(scripted({ [question]: says(ATTACKS.join('\n\n')) }));
      const page = await ChatPage.open(browsing, chat.url);
      await page.ask(question);
      const check = async () => {
        const words = (await page.answerTo('Hostile?')).locator('.markdown');
        await words.locator('math').first().waitFor();
        await words.locator('.hljs-tag, .hljs-name').first().waitFor();
        expect(await liveParts(page.page)).to.deep.equal([]);
        expect((await page.transcript(question))[0]).to.equal(`question: ${question}`);
        const shown = await words.textContent();
        for (const html of ATTACKS.filter((text) => text.startsWith('<') && !text.startsWith('<java'))) expect(shown).to.include(html);
      };
      await check();
      await page.shoot('hostile');
      await page.reload();
      await check();
    }),
  );

  it(
    'would be noticed here if they got through: the policy blocks a picture and a script from elsewhere',
    inBrowser(async (browsing) => {
      const page = await ChatPage.open(browsing, chat.url);
      await page.page.evaluate(() => {
        const picture = new Image();
        picture.src = 'https://pictures.example/pixel.png';
        const violated = new Promise((resolve) => document.addEventListener('securitypolicyviolation', resolve, { once: true }));
        document.body.append(picture);
        return violated.then(() => undefined);
      });
      await page.page.waitForFunction(() => {
        document.body.insertAdjacentHTML('beforeend', '<b onclick="alert(1)" class="planted"></b>');
        document.querySelector<HTMLElement>('.planted')?.click();
        return true;
      });
      const troubles = browsing.troubles.splice(0).join('\n');
      expect(troubles).to.include('img-src').and.include('request to another place: https://pictures.example/pixel.png');
      expect(troubles).to.include('script-src').and.not.include('dialog');
    }),
  );

  it(
    'are stored and shown as they are, on a narrow page, also after a reload',
    inBrowser(async (browsing) => {
      chat.flow.model.use(answer((question) => question));
      const page = await ChatPage.open(browsing, chat.url, NARROW);
      for (const text of ODD) {
        await page.ask(text);
        await page.shows([`question: ${text}`, `answer: ${text}`], { loosely: true });
        expect(await sticksOut(page.page), text).to.deep.equal([]);
      }
      const { id } = await chat.person.conversation();
      const stored = (await chat.person.entries(id)).map((entry) => entry.text);
      expect(stored.slice(-2 * ODD.length)).to.deep.equal(ODD.flatMap((text) => [text, text]));
      await page.shoot('odd-360');
      await page.reload();
      await page.shows(
        ODD.flatMap((text) => [`question: ${text}`, `answer: ${text}`]),
        { loosely: true },
      );
      expect(await sticksOut(page.page)).to.deep.equal([]);
    }),
  );

  it(
    'that are wide scroll in their own block: code, tables, formulas, deep lists',
    inBrowser(async (browsing) => {
      chat.flow.model.use(scripted({ 'Wide?': says(WIDE) }));
      const page = await ChatPage.open(browsing, chat.url, NARROW);
      await page.ask('Wide?');
      const wide = await page.answerTo('Wide?');
      await wide.locator('math').last().waitFor();
      expect(await sticksOut(page.page)).to.deep.equal([]);
      for (const block of ['pre', '.table-scroll']) {
        const scrolls = await wide.locator(block).evaluate((box) => box.scrollWidth > box.clientWidth);
        expect(scrolls, `${block} scrolls`).to.equal(true);
      }
      expect(await graveFindings(page.page)).to.deep.equal([]);
      await wide.evaluate((article) => article.scrollIntoView());
      await page.shoot('wide-360');
      await wide.evaluate((article) => article.scrollIntoView({ block: 'end' }));
      await page.shoot('wide-360-end');
    }),
  );

  it(
    'that are a broken or half-written formula are shown as they were written, readable in both themes',
    inBrowser(async (browsing) => {
      const pause = hold();
      const steps = [{ text: '$$\n\\frac{a' }, { hold: pause }, { text: '}{b}\n$$\n\nBroken: $\\frac{1}{$' }];
      chat.flow.model.use(scripted({ 'A formula?': { steps } }));
      const page = await ChatPage.open(browsing, chat.url);
      await page.ask('A formula?');
      await page.page.getByText('\\frac{a').waitFor();
      pause.release();
      const formulas = await page.answerTo('A formula?');
      await formulas.getByText('\\frac{1}{').waitFor();
      expect(await formulas.locator('math').count()).to.equal(1);
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.page.emulateMedia({ colorScheme });
        expect(await graveFindings(page.page), colorScheme).to.deep.equal([]);
      }
    }),
  );
});
