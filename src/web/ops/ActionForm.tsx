/**
 * Owns: doing something: first what it would do, then a reason, then the deed. One key for each opened form: a second click, or a repeat after
 * a lost answer, does nothing again. Shown to those who may.
 */
import { useState } from 'react';
import type { ActionPreview, ActionResult, OpsRole } from '../../contract/operators.ts';
import { uuidv7 } from '../../kernel/ids.ts';
import { note } from './format.ts';
import { ReasonForm, useHeld } from './ReasonForm.tsx';
import { useMay } from './role.ts';
import { request } from './wire.ts';
import { t } from './words.ts';

export interface ActionFormProps {
  readonly label: string;
  /** Below `/admin/api/`. */
  readonly path: string;
  /** Members of the body beside reason and key. */
  readonly place?: Readonly<Record<string, unknown>>;
  readonly needs?: OpsRole;
  readonly done: () => void;
  readonly hold: (held: boolean) => void;
  /** What is said of the answer; as it is left out: what is so now. */
  readonly tell?: (answer: unknown) => string;
}

interface Opened {
  readonly preview: ActionPreview;
  readonly key: string;
}

const NOWHERE = {};
const tellState = (answer: unknown) => t('Done. Now: {state}.', { state: note((answer as ActionResult).after) });

export function ActionForm({ label, path, place = NOWHERE, needs = 'operator', done, hold, tell = tellState }: ActionFormProps) {
  const may = useMay(needs);
  const [opened, setOpened] = useState<Opened | null>(null);
  const [said, setSaid] = useState('');
  const [busy, setBusy] = useState(false);
  const isOpen = opened !== null;
  const opener = useHeld(isOpen, hold);
  if (!may) return null;

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
      const answer = await request<unknown>(path, { reason, idempotencyKey: opened.key, ...place });
      close();
      done();
      return tell(answer);
    });
  }
  return (
    <div className="action">
      <button ref={opener} type="button" className="button" onClick={() => void open()} disabled={busy || isOpen} aria-expanded={isOpen}>
        {label}…
      </button>
      {opened && <ReasonForm label={label} effect={<p lang="en">{opened.preview.effect}</p>} busy={busy} close={close} confirm={confirm} />}
      <p role="status" className="note">
        {said}
      </p>
    </div>
  );
}
