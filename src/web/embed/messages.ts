/**
 * Owns: what the panel in its frame and the page around it say to each other (spec/decisions/0032). Nothing else passes between them.
 * The loader runs on pages of other sites and takes only the types of this file.
 */
import { z } from 'zod';

/** More of one text than this is not looked at. The loader sends less. */
const textMaxChars = 20_000;

const pageMessage = z.object({
  type: z.literal('heph:page'),
  url: z.string().max(textMaxChars),
  title: z.string().max(textMaxChars),
  /** Empty: nothing is marked. */
  selection: z.string().max(textMaxChars),
});

/** From the page to the panel: what the person looks at, and that the panel has come into sight. */
export const hostMessageSchema = z.discriminatedUnion('type', [pageMessage, z.object({ type: z.literal('heph:shown') })]);
export type HostMessage = z.infer<typeof hostMessageSchema>;

/** From the panel to the page: that it listens, and that the person wants it closed. */
export interface PanelMessage {
  readonly type: 'heph:ready' | 'heph:close';
}
