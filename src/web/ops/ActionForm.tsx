/**
 * Owns: doing something: first what it would do, then a reason, then the deed. One key for each opened form: a second click, or a repeat after
 * a lost answer, does nothing again.
 */
import { type FormEvent, useEffect, useId, useRef, useState } from 'react';
import type { ActionPreview, ActionResult } from '../../contract/operators.ts';
import { uuidv7 } from '../../kernel/ids.ts';
import { note } from './format.ts';
import { request } from './wire.ts';

export interface ActionFormProps {
  readonly label: string;
  /** Below `/admin/api/`. */
  readonly path: string;
  readonly workspace?: string | null;
  readonly done: () => void;
  readonly hold: (held: boolean) => void;
}

interface Opened {
  readonly preview: ActionPreview;
  readonly key: string;
}

const REASON_MAX_CHARS = 500;

export function ActionForm({ label, path, workspace, done, hold }: ActionFormProps) {
  const [opened, setOpened] = useState<Opened | null>(null);
  const [said, setSaid] = useState('');
  const [busy, setBusy] = useState(false);
  const opener = useRef<HTMLButtonElement>(null);
  const place = workspace === undefined ? {} : { workspace };
  const isOpen = opened !== null;
  useEffect(() => {
    if (!isOpen) return;
    hold(true);
    return () => {
      hold(false);
      opener.current?.focus(); // it can take the focus only now that it is enabled again
    };
  }, [isOpen, hold]);

  async function working(work: () => Promise<string>): Promise<void> {
    setBusy(true);
    setSaid(await work().catch((error: Error) => error.message));
    setBusy(false);
  }
  const open = () =>
    working(async () => {
      const preview = await request<ActionPreview>(`${path}?preview=true`, place);
      if (!preview.allowed) return preview.effect;
      setOpened({ preview, key: uuidv7() });
      return '';
    });
  const close = () => setOpened(null);
  function confirm(reason: string) {
    if (opened === null) return;
    void working(async () => {
      const { after } = await request<ActionResult>(path, { reason, idempotencyKey: opened.key, ...place });
      close();
      done();
      return `Done. Now: ${note(after)}.`;
    });
  }
  return (
    <div className="action">
      <button ref={opener} type="button" className="button" onClick={() => void open()} disabled={busy || isOpen} aria-expanded={isOpen}>
        {label}…
      </button>
      {opened && <ReasonForm label={label} effect={opened.preview.effect} busy={busy} close={close} confirm={confirm} />}
      <p role="status" className="note">
        {said}
      </p>
    </div>
  );
}

interface ReasonFormProps {
  readonly label: string;
  readonly effect: string;
  readonly busy: boolean;
  readonly close: () => void;
  readonly confirm: (reason: string) => void;
}

/** What it would do, and why it is to be done. It has the focus while it is there. */
function ReasonForm({ label, effect, busy, close, confirm }: ReasonFormProps) {
  const field = useRef<HTMLInputElement>(null);
  const id = useId();
  useEffect(() => field.current?.focus(), []);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const reason = field.current?.value.trim() ?? '';
    if (reason !== '') confirm(reason);
  };
  return (
    <form
      onSubmit={submit}
      onKeyDown={(event) => {
        if (event.key === 'Escape') close();
      }}
    >
      <p>{effect}</p>
      <label htmlFor={id}>Why?</label>
      <input id={id} ref={field} required maxLength={REASON_MAX_CHARS} autoComplete="off" />
      <button type="submit" className="button primary" disabled={busy}>
        {label}
      </button>
      <button type="button" className="button quiet" onClick={close}>
        Cancel
      </button>
    </form>
  );
}
