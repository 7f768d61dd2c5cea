/** `user.json`: who the developer is. */
import type { ContentSource } from '../../spi.ts';

const PATH = 'inputs/context/user.json';
const MAX_BYTES = 8 * 1024;

export const userSource: ContentSource = {
  name: 'user',
  paths: [PATH],
  async documents({ account: { displayName, timeZone } }) {
    const says = 'who the developer is: name and time zone';
    return [{ path: PATH, says, content: { name: displayName, timeZone }, maxBytes: MAX_BYTES }];
  },
};
