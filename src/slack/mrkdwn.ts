/**
 * Owns: Markdown as models write it -> Slack's mrkdwn, block by block, so that a cut finds a boundary.
 * `&`, `<` and `>` of the text are always escaped: Slack's own signs (`<!channel>`, `<@U1>`, `<url|text>`) can only come from here, and here only
 * links to http, https and mailto are made. What has no mrkdwn (tables, HTML, pictures) stays readable as text.
 */

/** A piece of a message that is not torn apart when there is room elsewhere. `code`: its lines stand between fences, which do not count as lines. */
export interface Block {
  readonly kind: 'text' | 'code';
  /** Of the source. */
  readonly lines: readonly string[];
}

const FENCE = /^ {0,3}(`{3,}|~{3,})/;

/** The blocks of a text: code between fences, and what stands between empty lines. */
export function blocksOf(markdown: string): readonly Block[] {
  const blocks: Block[] = [];
  let lines: string[] = [];
  let fence: string | null = null;
  const close = (kind: Block['kind']) => {
    if (lines.length > 0 || kind === 'code') blocks.push({ kind, lines });
    lines = [];
  };
  for (const line of markdown.split(/\r\n|\r|\n/)) {
    const mark = FENCE.exec(line)?.[1];
    if (fence !== null) {
      if (mark?.startsWith(fence) && line.trim() === mark) {
        close('code');
        fence = null;
      } else lines.push(line);
    } else if (mark) {
      close('text');
      fence = mark;
    } else if (line.trim() === '') close('text');
    else lines.push(line);
  }
  close(fence === null ? 'text' : 'code');
  return blocks;
}

/** What Slack shows of a block. */
export function renderBlock({ kind, lines }: Block): string {
  // A fence inside of the code would end it early: a zero-width space keeps the three signs apart.
  if (kind === 'code') return `\`\`\`\n${lines.map((line) => escapeText(line).replaceAll('```', '`\u200B`\u200B`')).join('\n')}\n\`\`\``;
  return lines.map(renderLine).join('\n');
}

export function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function renderLine(line: string): string {
  const heading = /^ {0,3}#{1,6}\s+(.*?)\s*#*$/.exec(line)?.[1];
  if (heading !== undefined) return heading === '' ? '' : `*${renderInline(heading).replaceAll('*', '')}*`;
  if (/^ {0,3}([-*_])(\s*\1){2,}\s*$/.test(line)) return '──────────';
  const quote = /^ {0,3}> ?(.*)$/.exec(line)?.[1];
  if (quote !== undefined) return `> ${renderInline(quote)}`;
  const item = /^(\s*)[-*+]\s+(.*)$/.exec(line);
  if (item) return `${item[1]}• ${renderInline(item[2] ?? '')}`;
  return renderInline(line);
}

/** Code, links and pictures: what stands in them is not looked at as emphasis. */
const SPANS = /(`+)(?!`)(.+?)(?<!`)\1(?!`)|!?\[([^\][\n]*)\]\(\s*<?([^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*)>?(?:\s+"[^"]*")?\s*\)/g;

function renderInline(text: string): string {
  let out = '';
  let at = 0;
  for (const match of text.matchAll(SPANS)) {
    const [whole, ticks, code = '', label = '', url = ''] = match;
    out += renderEmphasis(text.slice(at, match.index));
    out += ticks ? `\`${escapeText(code.replaceAll('`', 'ˋ'))}\`` : renderLink(label, url, whole);
    at = match.index + whole.length;
  }
  return out + renderEmphasis(text.slice(at));
}

function renderLink(label: string, url: string, whole: string): string {
  if (!/^(https?:\/\/|mailto:)/i.test(url)) return escapeText(whole);
  const target = url.replaceAll('&', '&amp;').replaceAll('<', '%3C').replaceAll('>', '%3E').replaceAll('|', '%7C');
  const words = escapeText(label.trim()).replaceAll('|', '¦');
  return words === '' ? `<${target}>` : `<${target}|${words}>`;
}

/** Bold is marked by a sign of its own until italics are through: `*` means italics before and bold after. */
const BOLD = '\u0001';

function renderEmphasis(text: string): string {
  return escapeText(text.replaceAll(BOLD, ''))
    .replace(/\*\*(?=\S)(.+?)(?<=\S)\*\*|(?<![\p{L}\p{N}])__(?=\S)(.+?)(?<=\S)__(?![\p{L}\p{N}])/gu, (_, a, b) => `${BOLD}${a ?? b}${BOLD}`)
    .replace(/(?<![\p{L}\p{N}*])\*(?=[^\s*])([^*]+?)(?<=\S)\*(?![\p{L}\p{N}*])/gu, '_$1_')
    .replace(/~~(?=\S)(.+?)(?<=\S)~~/g, '~$1~')
    .replaceAll(BOLD, '*');
}
