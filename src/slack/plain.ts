/**
 * Owns: the words that a person typed, from what Slack makes of them: signs are unescaped, links and mentions become text.
 */

/** `a &lt; b, see <https://x.example|x>` -> `a < b, see x (https://x.example)` */
export function plainText(text: string): string {
  return text
    .replace(/<([^<>]*)>/g, (_, inside: string) => plainSign(inside))
    .replace(/&(lt|gt|amp);/g, (_, name: string) => SIGNS[name] ?? '');
}

const SIGNS: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&' };

function plainSign(inside: string): string {
  const bar = inside.indexOf('|');
  const [target, label] = bar < 0 ? [inside, null] : [inside.slice(0, bar), inside.slice(bar + 1)];
  if (target.startsWith('@')) return `@${label ?? target.slice(1)}`;
  if (target.startsWith('#')) return `#${label ?? target.slice(1)}`;
  if (target.startsWith('!')) return `@${label ?? target.slice(1).split('^')[0]}`;
  const address = target.replace(/^mailto:/, '');
  return label === null || label === address || label === target ? address : `${label} (${address})`;
}
