/**
 * Owns: where the person writes: Enter sends, Shift+Enter starts a line. Refused words come back here with the reason.
 * The kit's composer holds the text; whether it may go out is decided here.
 */
import { ComposerPrimitive, useAui, useAuiState } from '@assistant-ui/react';
import { type FormEvent, type KeyboardEvent, useEffect, useState, useSyncExternalStore } from 'react';
import { codePoints, isBlank } from '../../kernel/text.ts';
import { runningTurn } from '../store/timeline.ts';
import { t } from '../strings.ts';
import { useChat, usePage } from './context.ts';
import { useConversationId, useThreadId } from './conversation.ts';
import { LockIcon, SendIcon, StopIcon } from './icons.tsx';
import { PagePart } from './Panel.tsx';
import { useReadOnly } from './use-connection.ts';
import { useDraft } from './use-draft.ts';

/** From this share of the limit on, the person sees how much is left. */
const counterFrom = 0.9;
/** Legacy code of a key that belongs to an input method. Safari sends it for the Enter that ends a composition. */
const imeKeyCode = 229;
const rowsMax = 10;

/** Takes a refused question back into the empty composer. When something newer is written there, it stays in the list instead. */
function useRefusals(): string | null {
  const { controller } = usePage();
  const aui = useAui();
  const text = useAuiState((state) => state.composer.text);
  const threadId = useThreadId();
  const refused = useChat((state) => state.outbox.find((item) => item.phase === 'refused' && item.threadId === threadId));
  const [refusal, setRefusal] = useState<{ text: string; reason: string } | null>(null);
  useEffect(() => {
    if (refused === undefined || !isBlank(aui.composer.getState().text)) return;
    const words = controller.takeBack(refused.requestId);
    if (words === null) return;
    setRefusal({ text: words, reason: refused.reason ?? '' });
    aui.composer.setText(words);
  }, [aui, controller, refused]);
  return refusal !== null && refusal.text === text ? refusal.reason : null;
}

function useStop(): { running: boolean; stopping: boolean; stop: () => void } {
  const { controller } = usePage();
  const conversationId = useConversationId();
  const turnId = useChat((state) => runningTurn(state, conversationId)?.id ?? null);
  const stopping = useChat((state) => turnId !== null && state.stopping.includes(turnId));
  const stop = () => {
    if (turnId !== null) void controller.stopTurn(turnId);
  };
  return { running: turnId !== null, stopping, stop };
}

function Counter({ left }: { left: number }) {
  const over = left < 0;
  return (
    <p id="composer-counter" className={over ? 'composer-note over' : 'composer-note'} role={over ? 'alert' : undefined}>
      {over ? t.composer.over(-left) : t.composer.left(left)}
    </p>
  );
}

/** In place of the composer while nothing can be sent; what was written stays in the draft. */
function ReadOnly() {
  return (
    <div className="composer read-only">
      <LockIcon />
      <p>{t.readOnly}</p>
    </div>
  );
}

export function Composer() {
  return useReadOnly() ? <ReadOnly /> : <Writing />;
}

function Writing() {
  const { session, controller, host } = usePage();
  const threadId = useThreadId();
  const text = useAuiState((state) => state.composer.text);
  const { running, stopping, stop } = useStop();
  const refusal = useRefusals();
  const notice = useSyncExternalStore(controller.notice.subscribe, controller.notice.get);
  useDraft(`heph.draft.${session.workspace.slug}.${session.account.id}.${threadId ?? 'main'}`);
  const limit = session.limits.questionMaxChars;
  const left = limit - codePoints(text);
  const sendable = !isBlank(text) && left >= 0;
  const problem = refusal ?? notice;
  const name = session.assistantName;
  const label = threadId === null ? t.composer.label(name) : t.thread.composer;
  const placeholder = threadId === null ? t.composer.placeholder(name) : t.thread.write;
  const onSubmit = (event: FormEvent) => {
    if (!sendable) event.preventDefault();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && event.keyCode === imeKeyCode) event.preventDefault();
  };
  return (
    <ComposerPrimitive.Root className="composer" aria-label={label} onSubmit={onSubmit}>
      {problem !== null && (
        <p className="composer-note over" role="alert" dir="auto">
          {problem}
        </p>
      )}
      {host !== null && <PagePart host={host} />}
      <div className="composer-box">
        <ComposerPrimitive.Input
          id="composer-input"
          className="composer-input"
          dir="auto"
          aria-label={label}
          aria-describedby="composer-hint"
          placeholder={running ? t.composer.followUp : placeholder}
          autoFocus={matchMedia('(pointer: fine)').matches}
          maxRows={rowsMax}
          cancelOnEscape={false}
          addAttachmentOnPaste={false}
          enterKeyHint="send"
          onKeyDown={onKeyDown}
        />
        {running && (
          <button
            type="button"
            className="button round"
            disabled={stopping}
            onClick={stop}
            aria-label={stopping ? t.composer.stopping : t.composer.stop}
            title={t.composer.stop}
          >
            <StopIcon />
          </button>
        )}
        <button type="submit" className="button round primary" disabled={!sendable} aria-label={t.composer.send} title={t.composer.send}>
          <SendIcon />
        </button>
      </div>
      {left < limit * (1 - counterFrom) && <Counter left={left} />}
      <p id="composer-hint" className="composer-hint">
        {host === null ? t.composer.hint : t.panel.hint}
      </p>
    </ComposerPrimitive.Root>
  );
}
