/**
 * Owns: a question of the person and what became of it: sending, not sent, waiting, stopped.
 */

import type { QuestionItem, QuestionStatus } from '../store/timeline.ts';
import { t } from '../strings.ts';
import { usePage } from './context.ts';
import { AlertIcon } from './icons.tsx';
import { DeleteAction, ThreadAction } from './MessageActions.tsx';
import { useReadOnly } from './use-connection.ts';

function statusText(status: QuestionStatus, assistantName: string): string | null {
  switch (status.kind) {
    case 'none':
      return null;
    case 'sending':
      return t.status.sending;
    case 'unsent':
      return t.status.unsent;
    case 'queued':
      return t.status.queued(status.place);
    case 'waiting':
      return t.status.waiting(assistantName, status.position);
    case 'starting':
      return status.again ? t.status.startingAgain : t.status.starting;
    case 'stopped':
      return status.started ? t.status.stoppedWithoutAnswer : t.status.removed;
  }
}

function UnsentActions({ requestId }: { requestId: string }) {
  const { controller } = usePage();
  return (
    <span className="status-actions">
      <button type="button" className="button small" onClick={() => void controller.resend(requestId)}>
        {t.actions.sendAgain}
      </button>
      <button type="button" className="button quiet small" onClick={() => controller.discard(requestId)}>
        {t.actions.discard}
      </button>
    </span>
  );
}

function RemoveAction({ turnId, removing }: { turnId: string; removing: boolean }) {
  const { controller } = usePage();
  return (
    <button type="button" className="button quiet small" disabled={removing} onClick={() => void controller.stopTurn(turnId)}>
      {removing ? t.actions.removing : t.actions.remove}
    </button>
  );
}

function Status({ item }: { item: QuestionItem }) {
  const { session } = usePage();
  const readOnly = useReadOnly();
  const { status } = item;
  const text = statusText(status, session.assistantName);
  if (text === null) return null;
  const waits = status.kind === 'queued' || status.kind === 'waiting' || status.kind === 'starting';
  return (
    <>
      <span className={`status status-${status.kind}`}>
        {status.kind === 'unsent' && <AlertIcon />}
        {waits && <span className="waiting-dot" aria-hidden="true" />}
        <span>
          {text}
          {status.kind === 'unsent' && status.reason !== null && <>. {status.reason}</>}
        </span>
      </span>
      {!readOnly && status.kind === 'unsent' && <UnsentActions requestId={status.requestId} />}
      {!readOnly && waits && item.turnId !== null && <RemoveAction turnId={item.turnId} removing={item.stopping} />}
    </>
  );
}

export function Question({ item }: { item: QuestionItem }) {
  const { dates } = usePage();
  const pending = item.status.kind !== 'none' && item.status.kind !== 'stopped';
  return (
    <>
      <div className={`bubble${pending ? ' pending' : ''}${item.erased ? ' gone' : ''}`} dir="auto">
        {item.erased ? <em>{t.erased}</em> : item.text}
      </div>
      <div className="meta">
        <Status item={item} />
        {item.fromSlack && <span>{t.fromSlack}</span>}
        {item.status.kind !== 'unsent' && (
          <time dateTime={item.at} title={dates.full(item.at)}>
            {dates.time(item.at)}
          </time>
        )}
        {item.entryId !== null && !item.erased && (
          <>
            <ThreadAction entryId={item.entryId} />
            {(item.status.kind === 'none' || item.status.kind === 'stopped') && (
              <DeleteAction entryId={item.entryId} deleting={item.deleting} />
            )}
          </>
        )}
      </div>
    </>
  );
}
