/**
 * Owns: an answer: live, complete, stopped or deleted, with its cards.
 */
import { TextMessagePartProvider } from '@assistant-ui/react';
import type { Part } from '../../contract/web.ts';
import type { AnswerItem } from '../store/timeline.ts';
import { t } from '../strings.ts';
import { CopyButton } from './CopyButton.tsx';
import { usePage } from './context.ts';
import { MarkdownText, SafeLink } from './Markdown.tsx';
import { ThreadAction, Votes } from './MessageActions.tsx';

type CardPart = Extract<Part, { type: 'card' }>;

/** Only pages of the web: a link of another kind stays text. */
function webUrl(url: string | null): string | undefined {
  return url !== null && /^https?:\/\//i.test(url) ? url : undefined;
}

function Card({ card }: { card: CardPart }) {
  return (
    <div className="card" data-kind={card.kind}>
      <bdi className="card-title">
        <SafeLink href={webUrl(card.url)}>{card.title}</SafeLink>
      </bdi>
      {card.text !== '' && (
        <p className="plain-text" dir="auto">
          {card.text}
        </p>
      )}
    </div>
  );
}

function PartView({ part, live }: { part: Part; live: boolean }) {
  if (part.type === 'card') return <Card card={part} />;
  return (
    <TextMessagePartProvider text={part.text} isRunning={live}>
      <MarkdownText />
    </TextMessagePartProvider>
  );
}

/** What happens now. While words arrive they say it themselves: only the spark moves below them. */
function StageLine({ stage, writing }: { stage: string | null; writing: boolean }) {
  return (
    <p className="stage">
      <span className="spark" aria-hidden="true" />
      <span dir="auto" {...(stage === null ? {} : { lang: t.serverLanguage })}>
        {stage ?? (writing ? '' : t.answer.thinking)}
      </span>
    </p>
  );
}

export function Answer({ item }: { item: AnswerItem }) {
  const { dates } = usePage();
  const live = item.phase === 'live';
  if (item.erased) {
    return (
      <p className="erased">
        <em>{t.erased}</em>
      </p>
    );
  }
  return (
    <>
      {item.digest && <p className="digest-label">{t.digest}</p>}
      {item.parts.map((part, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: parts only grow at the end and have no id.
        <PartView key={index} part={part} live={live} />
      ))}
      {live ? (
        <StageLine stage={item.stage} writing={item.text !== ''} />
      ) : (
        <div className="meta">
          {item.phase === 'stopped' && <span className="chip">{t.answer.stopped}</span>}
          <time dateTime={item.at} title={dates.full(item.at)}>
            {dates.time(item.at)}
          </time>
          {item.text !== '' && <CopyButton text={item.text} label={t.actions.copyAnswer} />}
          {item.entryId !== null && (
            <>
              <Votes entryId={item.entryId} vote={item.vote} />
              <ThreadAction entryId={item.entryId} />
            </>
          )}
        </div>
      )}
    </>
  );
}
