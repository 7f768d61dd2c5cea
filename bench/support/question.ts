/**
 * Owns: what a bench asks and what its model answers. A question carries its number, by which the processes recognise it.
 */
export const questionText = (nth: number): string => `Bench question ${nth}: does it work?`;

const QUESTION = /Bench question (\d+):/g;

/** The number of the last question in a prompt or a request; 0 when there is none. A situation at the end quotes older ones. */
export function lastQuestionIn(text: string): number {
  const situationAt = text.lastIndexOf('<situation>'); // instructions before it name it, too
  const said = situationAt < 0 ? text : text.slice(0, situationAt);
  return Number([...said.matchAll(QUESTION)].at(-1)?.[1] ?? 0);
}

/** The answer in the pieces in which it is streamed. */
export const ANSWER_PIECES: readonly string[] = Array.from({ length: 20 }, () => 'It works, word by word. ');
