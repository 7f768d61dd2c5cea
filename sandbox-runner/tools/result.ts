/**
 * Owns: the shape of every tool result that leaves the runner: text in the one normalisation, and nothing beside it.
 */
import { wellFormed } from '../../src/kernel/text.ts';

type Content = { type: 'text'; text: string } | { type: 'image'; data: string; mimeType: string };

/** A result with its text made well-formed, and without what Pi keeps for its terminal and for programs. */
export function wellFormedResult(result: { content: Content[]; isError?: boolean }): {
  content: Content[];
  details: undefined;
  isError?: boolean;
} {
  const content = result.content.map((block) => (block.type === 'text' ? { ...block, text: wellFormed(block.text) } : block));
  return { content, details: undefined, ...(result.isError === true ? { isError: true } : {}) };
}
