/**
 * Owns: the fold of partial answers (rule R5 seen from the browser): deltas by (epoch, offset) -> one text per turn.
 * Does not own: whether a turn runs (turns.ts) or what a viewer is shown (timeline.ts).
 * - The fold is idempotent: a repeat is ignored, an overlap adds only what is new.
 * - A delta that starts after the known text leaves a gap: the words are kept back and only the stage is shown.
 * - A newer epoch is another attempt: the words of the older one are discarded, never continued.
 * - Words take the place of the stage that was there before them, and of the one with which the attempt began (what it does between
 *   tools); a stage that comes with them or after them takes theirs.
 */
import type { Partial } from '../../contract/events.ts';

export interface LiveText {
  epoch: number;
  /** Everything from the start of the answer without a hole, in UTF-16 units. */
  text: string;
  /** The furthest offset that any delta reached. Larger than `text.length` while a delta in between is missing. */
  seenTo: number;
  /** What the assistant does right now, for a person. */
  stage: string | null;
  /** The stage with which the attempt began; null when that was not seen. */
  idleStage: string | null;
  /** Words came since the stage began: they are what happens now, and the stage is old news. */
  writing: boolean;
  /** The turn is over: the words only stay until the answer's entry arrives. */
  closed: boolean;
}

/** True while words in the middle are missing. Only a snapshot, or a delta from before the hole, cures it. */
export function hasGap(live: LiveText): boolean {
  return live.seenTo > live.text.length;
}

function begin(partial: Partial): LiveText {
  const whole = partial.offset === 0;
  return {
    epoch: partial.epoch,
    text: whole ? partial.text : '',
    seenTo: partial.offset + partial.text.length,
    stage: partial.stage,
    idleStage: whole ? partial.stage : null,
    writing: whole && partial.text !== '',
    closed: false,
  };
}

/**
 * `known` with one more delta.
 * @param known what was folded so far for this turn, undefined before the first delta
 * @param floor the newest epoch whose attempt is known to be over, or null
 * @returns `known` itself when the delta says nothing new
 */
export function foldPartial(known: LiveText | undefined, partial: Partial, floor: number | null): LiveText | undefined {
  if (floor !== null && partial.epoch <= floor) return known;
  if (known === undefined) return begin(partial);
  if (partial.epoch < known.epoch) return known;
  if (partial.epoch > known.epoch) return begin(partial);
  const end = partial.offset + partial.text.length;
  const seenTo = Math.max(known.seenTo, end);
  const stage = end >= known.seenTo ? partial.stage : known.stage;
  const tookPlace = end > known.seenTo && (stage === known.stage || stage === known.idleStage);
  const writing = tookPlace || (stage === known.stage && known.writing);
  const fits = partial.offset <= known.text.length && end > known.text.length;
  const text = fits ? known.text + partial.text.slice(known.text.length - partial.offset) : known.text;
  if (text === known.text && seenTo === known.seenTo && stage === known.stage) return known;
  return { ...known, text, seenTo, stage, writing };
}
