/**
 * Owns: how an answer's Markdown is made safe and which extras it needs. Highlighting and formulas are large, so they are fetched when a
 * text first needs them; until then the text is shown without.
 * Safety: raw HTML stays text, the tree is sanitised before our own plugins add to it, and pictures are never fetched (Markdown.tsx).
 */
import { escapeCurrencyDollars, type MarkdownTextPrimitiveProps, normalizeMathDelimiters } from '@assistant-ui/react-markdown';
import { useEffect, useMemo, useState } from 'react';
import rehypeSanitize, { defaultSchema, type Options as SanitizeSchema } from 'rehype-sanitize';
import remarkGfm from 'remark-gfm';

type RemarkPlugins = NonNullable<MarkdownTextPrimitiveProps['remarkPlugins']>;
type RehypePlugins = NonNullable<MarkdownTextPrimitiveProps['rehypePlugins']>;

export interface MarkdownSetup {
  remarkPlugins: RemarkPlugins;
  rehypePlugins: RehypePlugins;
  preprocess: ((text: string) => string) | undefined;
}

/** While an answer is written it is parsed four times a second: beyond this length its code gets its colours at the end. */
const liveHighlightMaxChars = 20_000;
/** Beyond this length, nested deeper, or with more marks in one paragraph, parsing would freeze the page: its time grows with their square. */
const formattedMaxChars = 300_000;
const nestedTooDeep = /^[ \t>]{120}/m;
const paragraphMarksMax = 1_500;
const fence = /^ {0,3}(```+|~~~+)[^\n]*\n[\s\S]*?^ {0,3}\1/gm;
const mayHoldCode = /```|~~~|^ {4}/m;
const mayHoldMath = /\$|\\\(|\\\[/;

const schema: SanitizeSchema = {
  ...defaultSchema,
  attributes: { ...defaultSchema.attributes, code: [['className', /^language-./, 'math-inline', 'math-display']] },
};

interface Node {
  type: string;
  children?: Node[];
}

/** HTML in an answer is words about HTML: it is shown as it was written, and never becomes part of the page. */
function rawAsText() {
  const visit = (node: Node): void => {
    if (node.type === 'raw') node.type = 'text';
    for (const child of node.children ?? []) visit(child);
  };
  return visit;
}

/** What a lazy extra adds, once it is there. Loaded once for the page; a failed load is tried again by the next text. */
class LazyPlugins {
  readonly #load: () => Promise<{ remark: RemarkPlugins; rehype: RehypePlugins }>;
  value: { remark: RemarkPlugins; rehype: RehypePlugins } | null = null;
  #loading: Promise<void> | null = null;

  constructor(load: () => Promise<{ remark: RemarkPlugins; rehype: RehypePlugins }>) {
    this.#load = load;
  }

  async get(): Promise<void> {
    this.#loading ??= this.#load().then(
      (plugins) => {
        this.value = plugins;
      },
      () => {
        this.#loading = null;
      },
    );
    await this.#loading;
  }
}

const highlight = new LazyPlugins(async () => {
  const { default: rehypeHighlight } = await import('rehype-highlight');
  return { remark: [], rehype: [[rehypeHighlight, { detect: false }]] };
});

const math = new LazyPlugins(async () => {
  const [{ default: remarkMath }, { default: rehypeKatex }] = await Promise.all([import('remark-math'), import('rehype-katex')]);
  return {
    remark: [remarkMath],
    rehype: [[rehypeKatex, { output: 'mathml', errorColor: 'currentcolor', strict: 'ignore', maxExpand: 200 }]],
  };
});

function useLazy(plugins: LazyPlugins, wanted: boolean): LazyPlugins['value'] {
  const [, setLoads] = useState(0);
  useEffect(() => {
    if (wanted && plugins.value === null) void plugins.get().then(() => setLoads((loads) => loads + 1));
  }, [plugins, wanted]);
  return wanted ? plugins.value : null;
}

function hasCrowdedParagraph(text: string): boolean {
  if ((text.match(/[*_[\]]/g)?.length ?? 0) <= paragraphMarksMax) return false;
  const paragraphs = text.replace(fence, '').split(/\n[ \t]*\n/);
  return paragraphs.some((paragraph) => (paragraph.match(/[*_[\]]/g)?.length ?? 0) > paragraphMarksMax);
}

/** True when a text must be shown as it is. */
export function isTooComplex(text: string): boolean {
  return text.length > formattedMaxChars || nestedTooDeep.test(text.replace(fence, '')) || hasCrowdedParagraph(text);
}

/** The first dash of a list or rule that is being written would make a heading of the line above it. */
const halfUnderline = /\n[ \t]*(?:-+|=+)[ \t]*$/;

function preprocessorOf(live: boolean, math: boolean): MarkdownSetup['preprocess'] {
  if (!live && !math) return undefined;
  return (text) => {
    const whole = live ? text.replace(halfUnderline, '') : text;
    return math ? normalizeMathDelimiters(escapeCurrencyDollars(whole)) : whole;
  };
}

/** The plugins for a text. The arrays keep their identity while nothing changes, so that the text is not parsed again. */
export function useMarkdownSetup(text: string, live: boolean): MarkdownSetup {
  const mathPlugins = useLazy(math, mayHoldMath.test(text));
  const codePlugins = useLazy(highlight, mayHoldCode.test(text) && (!live || text.length < liveHighlightMaxChars));
  return useMemo(
    () => ({
      remarkPlugins: [remarkGfm, ...(mathPlugins?.remark ?? [])],
      rehypePlugins: [rawAsText, [rehypeSanitize, schema], ...(mathPlugins?.rehype ?? []), ...(codePlugins?.rehype ?? [])],
      preprocess: preprocessorOf(live, mathPlugins !== null),
    }),
    [live, mathPlugins, codePlugins],
  );
}
