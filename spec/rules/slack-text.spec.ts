/**
 * Owns: proof of what a message in Slack looks like: Markdown as mrkdwn, nothing that pings, one message that fits. cases: H7, H9
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { compose } from '../../src/slack/compose.ts';
import { fitMessage, MESSAGE_MAX_CHARS } from '../../src/slack/fit.ts';
import { blocksOf, renderBlock } from '../../src/slack/mrkdwn.ts';
import { plainText } from '../../src/slack/plain.ts';
import { VOICE } from '../support/slack-scene.ts';

const render = (text: string) => blocksOf(text).map(renderBlock).join('\n\n');
const NOTE = '_The rest is in the app._';
const count = (text: string) => [...text].length;
const closed = (text: string) => (text.match(/```/g) ?? []).length % 2 === 0;

describe('an answer in Slack', () => {
  it('shows signs literally and pings nobody', () => {
    const text = 'if a < b && b > c: <!channel> <@U123> <!subteam^S1> <#C1|x> <https://x.example|ping>';
    expect(render(text)).to.equal(
      'if a &lt; b &amp;&amp; b &gt; c: &lt;!channel&gt; &lt;@U123&gt; &lt;!subteam^S1&gt; &lt;#C1|x&gt; &lt;https://x.example|ping&gt;',
    );
    expect(render('```\n<!here> && x\n```')).to.equal('```\n&lt;!here&gt; &amp;&amp; x\n```');
    expect(render('see `<@U1>`')).to.equal('see `&lt;@U1&gt;`');
  });

  for (const [markdown, mrkdwn] of [
    ['**bold** and *italic* and _also_ and ~~gone~~', '*bold* and _italic_ and _also_ and ~gone~'],
    ['__bold__ snake_case_name 2 * 3 * 4', '*bold* snake_case_name 2 * 3 * 4'],
    ['# A *title* #', '*A _title_*'],
    ['- one\n* two\n  + three\n1. four', '• one\n• two\n  • three\n1. four'],
    ['> quoted <b>', '> quoted &lt;b&gt;'],
    ['[docs](https://x.example/a?b=1&c=2) ok', '<https://x.example/a?b=1&amp;c=2|docs> ok'],
    ['[a|b](https://x.example/p|q)', '<https://x.example/p%7Cq|a¦b>'],
    ['![chart](https://x.example/c.png)', '<https://x.example/c.png|chart>'],
    ['[x](javascript:alert(1)) [y](<!channel>)', '[x](javascript:alert(1)) [y](&lt;!channel&gt;)'],
    ['[<!here>](https://x.example)', '<https://x.example|&lt;!here&gt;>'],
    ['`**code**` **b**', '`**code**` *b*'],
    ['---', '──────────'],
    ['```js\nlet a = 1;\n```\nafter', '```\nlet a = 1;\n```\n\nafter'],
    ['```\nnever closed', '```\nnever closed\n```'],
    ['~~~\n```\n~~~', '```\n`\u200B`\u200B`\n```'],
  ] as const) {
    it(`writes ${JSON.stringify(markdown)}`, () => {
      expect(render(markdown)).to.equal(mrkdwn);
    });
  }

  it('never makes a sign of Slack out of any text, other than a link to the web or to a mail address', () => {
    const pieces = fc.constantFrom(
      '<!channel>',
      '<@U1>',
      '<',
      '>',
      '&',
      '|',
      '`',
      '```\n',
      '\n',
      '**',
      '[',
      '](',
      ')',
      'https://x',
      '!here',
      ' ',
      'a',
      '\u0001',
      '#',
      '<#C1>',
      '\u{1F600}',
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 40 }), (list) => {
        const shown = fitMessage(list.join(''), NOTE, 60);
        for (const sign of shown.match(/<[^>]*>?/g) ?? []) expect(sign).to.match(/^<(https?:\/\/|mailto:)[^<>|]*(\|[^<>|]*)?>$/i);
        expect(shown.replace(/&(amp|lt|gt);/g, '')).to.not.include('&');
        expect(shown.isWellFormed()).to.equal(true);
        expect(count(shown)).to.be.at.most(60);
      }),
      { numRuns: 2_000 },
    );
  });

  describe('that is long', () => {
    for (const size of [3_001, 4_001, MESSAGE_MAX_CHARS - 1, MESSAGE_MAX_CHARS]) {
      it(`of ${size} characters is one whole message`, () => {
        expect(fitMessage('x'.repeat(size), NOTE)).to.equal('x'.repeat(size));
      });
    }

    for (const size of [MESSAGE_MAX_CHARS + 1, 40_001]) {
      it(`of ${size} characters is cut, and says where the rest is`, () => {
        const cut = fitMessage('x'.repeat(size), NOTE);
        expect([count(cut), cut.endsWith(`\n\n${NOTE}`)]).to.deep.equal([MESSAGE_MAX_CHARS, true]);
      });
    }

    it('is cut between two blocks', () => {
      const blocks = Array.from({ length: 30 }, (_, n) => `${n} ${'word '.repeat(70)}`.trim());
      const cut = fitMessage(blocks.join('\n\n'), NOTE);
      const kept = cut.split('\n\n').slice(0, -1);
      expect(kept).to.deep.equal(blocks.slice(0, kept.length));
      expect(kept.length).to.be.within(20, 25);
    });

    it('has its fence closed where the cut goes through code', () => {
      const cut = fitMessage(`Look:\n\n\`\`\`\n${'let x = a && b;\n'.repeat(1_000)}\`\`\`\nafter`, NOTE);
      expect([closed(cut), cut.endsWith(`\n\`\`\`\n\n${NOTE}`), count(cut) <= MESSAGE_MAX_CHARS]).to.deep.equal([true, true, true]);
      expect(cut.split('\n').at(-4)).to.equal('let x = a &amp;&amp; b;');
    });

    it('is never cut through a character, an escape or a link', () => {
      for (const piece of ['\u{1F600}', '&', '[a](https://x.example/y) ', '\u{1F469}\u200D\u{1F680}']) {
        const cut = fitMessage(piece.repeat(9_000), NOTE);
        const words = cut.slice(0, -NOTE.length);
        expect([cut.isWellFormed(), count(cut) <= MESSAGE_MAX_CHARS, /&(?!amp;|lt;|gt;)/.test(words)], piece).to.deep.equal([
          true,
          true,
          false,
        ]);
      }
    });

    it('keeps the mark of a stop', () => {
      const saying = { kind: 'turn', status: 'STOPPED', answers: ['x'.repeat(20_000)], error: null } as const;
      const text = String(compose({ id: 'a', saying }, VOICE));
      expect([text.endsWith('_Stopped here._'), text.includes(VOICE.appUrl), count(text) <= MESSAGE_MAX_CHARS]).to.deep.equal([
        true,
        true,
        true,
      ]);
    });
  });

  it('reads what a person typed', () => {
    for (const [sent, typed] of [
      ['a &lt; b &amp;&amp; c &gt; d', 'a < b && c > d'],
      ['&amp;lt;', '&lt;'],
      ['<https://x.example/a?b=1&amp;c=2>', 'https://x.example/a?b=1&c=2'],
      ['<https://x.example|x.example>', 'x.example (https://x.example)'],
      ['<mailto:a@x.example|a@x.example>', 'a@x.example'],
      ['<@U1> <@U1|ada> <#C1|general> <!here> <!subteam^S1|@team>', '@U1 @ada #general @here @@team'],
    ] as const) {
      expect(plainText(sent)).to.equal(typed);
    }
  });
});
