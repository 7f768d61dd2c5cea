/**
 * Owns: an excerpt of a search as pieces that are marked or not.
 */
export interface ExcerptPiece {
  readonly text: string;
  readonly marked: boolean;
}

/** @param matches parts of the excerpt in UTF-16 units, in order and apart from each other; what does not fit is left out */
export function piecesOf(excerpt: string, matches: readonly { start: number; end: number }[]): readonly ExcerptPiece[] {
  const pieces: ExcerptPiece[] = [];
  let from = 0;
  for (const { start, end } of matches) {
    if (start < from || end <= start || end > excerpt.length) continue;
    pieces.push({ text: excerpt.slice(from, start), marked: false }, { text: excerpt.slice(start, end), marked: true });
    from = end;
  }
  pieces.push({ text: excerpt.slice(from), marked: false });
  return pieces.filter(({ text }) => text !== '');
}
