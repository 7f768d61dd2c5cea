import { useEffect, useState } from 'react';
import { t } from '../strings.ts';
import { CheckIcon, CopyIcon } from './icons.tsx';

const confirmationMs = 2_000;

/** Copies `text` and says so for a moment. */
export function CopyButton({ text, label }: { text: string; label: string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), confirmationMs);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = () => {
    navigator.clipboard?.writeText(text).then(
      () => setCopied(true),
      () => setCopied(false),
    );
  };
  return (
    <button type="button" className="button quiet small" onClick={copy} aria-label={copied ? t.actions.copied : label}>
      {copied ? <CheckIcon /> : <CopyIcon />}
      <span aria-hidden="true">{copied ? t.actions.copied : t.actions.copy}</span>
    </button>
  );
}
