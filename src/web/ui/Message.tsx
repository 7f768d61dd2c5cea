/**
 * Owns: one message: which kind it is, its frame and its day. The kit gives the message's context; our item rides along in it.
 */
import { MessagePrimitive, useAuiState } from '@assistant-ui/react';
import type { TimelineItem } from '../store/timeline.ts';
import { t } from '../strings.ts';
import { Answer } from './Answer.tsx';
import { usePage } from './context.ts';
import { Failure } from './Failure.tsx';
import { Question } from './Question.tsx';

interface Carried {
  metadata: { custom: Record<string, unknown> };
}

/** use-runtime.ts puts the item into each message that it makes. */
function itemOf(message: Carried | undefined): TimelineItem | undefined {
  return message?.metadata.custom['item'] as TimelineItem | undefined;
}

function labelOf(item: TimelineItem, assistantName: string, time: string): string {
  const who = item.kind === 'question' ? t.you : item.kind === 'answer' && item.digest ? t.digest : assistantName;
  return `${who}, ${time}`;
}

export function Message() {
  const { dates, session } = usePage();
  const item = useAuiState((state) => itemOf(state.message));
  const newDay = useAuiState((state) => {
    const here = itemOf(state.message);
    const above = itemOf(state.thread.messages[state.message.index - 1]);
    return here !== undefined && (above === undefined || dates.dayKey(above.at) !== dates.dayKey(here.at));
  });
  if (item === undefined) return null;
  return (
    <>
      {newDay && <h2 className="day">{dates.dayLabel(item.at, Date.now())}</h2>}
      <MessagePrimitive.Root
        className={`message ${item.kind}`}
        role="article"
        aria-label={labelOf(item, session.assistantName, dates.time(item.at))}
      >
        {item.kind === 'question' && <Question item={item} />}
        {item.kind === 'answer' && <Answer item={item} />}
        {item.kind === 'failure' && <Failure item={item} />}
      </MessagePrimitive.Root>
    </>
  );
}
