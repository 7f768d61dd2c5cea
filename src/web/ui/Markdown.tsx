/**
 * Owns: the words of an answer as formatted text. Links open elsewhere and tell nobody where they were clicked; a picture becomes a link,
 * so that a text cannot make the browser call anybody; what is wide scrolls inside its own block.
 */

import { useMessagePartText } from '@assistant-ui/react';
import { type CodeHeaderProps, MarkdownTextPrimitive } from '@assistant-ui/react-markdown';
import { type ComponentPropsWithoutRef, memo, useEffect, useRef, useState } from 'react';
import { t } from '../strings.ts';
import { CopyButton } from './CopyButton.tsx';
import { ErrorBoundary } from './ErrorBoundary.tsx';
import { isTooComplex, useMarkdownSetup } from './markdown-plugins.ts';

/** `node` is the syntax tree's own object, which must not reach the DOM. */
type Html<T extends keyof React.JSX.IntrinsicElements> = ComponentPropsWithoutRef<T> & { node?: unknown };

export function SafeLink({ href, children, className }: { href: string | undefined; children: React.ReactNode; className?: string }) {
  if (href === undefined || href === '') return <span className={className}>{children}</span>;
  if (href.startsWith('#')) return <a href={href}>{children}</a>;
  return (
    <a className={className} href={href} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

function Picture({ src, alt }: Html<'img'>) {
  return <SafeLink href={typeof src === 'string' ? src : undefined}>{t.image(alt ?? '')}</SafeLink>;
}

function Table({ node: _node, ...props }: Html<'table'>) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table scrolls, and the keyboard must be able to scroll it.
    <section className="table-scroll" aria-label={t.table} tabIndex={0}>
      <table {...props} />
    </section>
  );
}

function Pre({ node: _node, ...props }: Html<'pre'>) {
  // biome-ignore lint/a11y/noNoninteractiveTabindex: wide code scrolls, and the keyboard must be able to scroll it.
  return <pre {...props} dir="ltr" tabIndex={0} />;
}

function CodeHeader({ language, code }: CodeHeaderProps) {
  return (
    <div className="code-header">
      <span>{language === 'unknown' ? '' : language}</span>
      <CopyButton text={code} label={t.actions.copyCode} />
    </div>
  );
}

/** A formula does not wrap. One that is too wide scrolls, and only then the keyboard stops at it. */
function Formula({ className, children }: Html<'span'>) {
  const box = useRef<HTMLSpanElement>(null);
  const [wide, setWide] = useState(false);
  useEffect(() => {
    const span = box.current;
    if (span === null) return;
    const observer = new ResizeObserver(() => setWide(span.scrollWidth > span.clientWidth));
    observer.observe(span);
    return () => observer.disconnect();
  }, []);
  return (
    <span ref={box} className={className} tabIndex={wide ? 0 : undefined}>
      {children}
    </span>
  );
}

const components = {
  span: ({ node: _node, ...props }: Html<'span'>) => (props.className === 'katex' ? <Formula {...props} /> : <span {...props} />),
  a: ({ href, children }: Html<'a'>) => <SafeLink href={href}>{children}</SafeLink>,
  img: Picture,
  table: Table,
  pre: Pre,
  CodeHeader,
  input: ({ checked }: Html<'input'>) => (
    <input type="checkbox" checked={checked === true} disabled aria-label={t.task(checked === true)} />
  ),
  // An answer is part of the page: its own headings come below those of the page. Most answers start with the second level.
  h1: ({ children }: Html<'h1'>) => <h3 className="title">{children}</h3>,
  h2: ({ children }: Html<'h2'>) => <h3>{children}</h3>,
  h3: ({ children }: Html<'h3'>) => <h4>{children}</h4>,
  h4: ({ children }: Html<'h4'>) => <h5>{children}</h5>,
  h5: ({ children }: Html<'h5'>) => <h6>{children}</h6>,
};

export function PlainText({ text, note }: { text: string; note?: string }) {
  return (
    <>
      {note !== undefined && <p className="note">{note}</p>}
      <div className="plain-text" dir="auto">
        {text}
      </div>
    </>
  );
}

/** The text part of the surrounding message. */
export const MarkdownText = memo(function MarkdownText() {
  const { text, status } = useMessagePartText();
  const { remarkPlugins, rehypePlugins, preprocess } = useMarkdownSetup(text, status.type === 'running');
  if (isTooComplex(text)) return <PlainText text={text} note={t.tooComplex} />;
  return (
    <ErrorBoundary fallback={<PlainText text={text} note={t.tooComplex} />}>
      <MarkdownTextPrimitive
        className="markdown"
        containerProps={{ dir: 'auto' }}
        components={components}
        remarkPlugins={remarkPlugins}
        rehypePlugins={rehypePlugins}
        smooth={false}
        {...(preprocess === undefined ? {} : { preprocess })}
      />
    </ErrorBoundary>
  );
});
