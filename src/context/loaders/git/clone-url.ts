/**
 * Owns: which clone URLs are accepted, and the sentences that refuse the others. Pure: where a name leads is asked when it is used.
 */

export type CloneUrlCheck = { readonly kind: 'ok'; readonly url: URL } | { readonly kind: 'refused'; readonly why: string };

const CLONE_URL_MAX_CHARS = 2_000;
const SCP_LIKE = /^[^/\s]+@[^/\s]+:/;

export function checkCloneUrl(text: string, { allowFile }: { readonly allowFile: boolean }): CloneUrlCheck {
  const refused = (why: string): CloneUrlCheck => ({ kind: 'refused', why });
  if (SCP_LIKE.test(text) || /^(ssh|git|git\+ssh):/i.test(text))
    return refused('Repositories are cloned over https only. Give the address that begins with https://.');
  if (text.length > CLONE_URL_MAX_CHARS || !URL.canParse(text))
    return refused('This is no clone URL. Write it like https://git.example.com/team/project.git.');
  const url = new URL(text);
  if (url.protocol === 'file:' && !allowFile)
    return refused('A repository of this machine needs HEPH_GIT_ALLOW_FILE=true: whoever asks here could then read it.');
  if (url.protocol !== 'https:' && url.protocol !== 'file:') return refused('The clone URL must begin with https://.');
  if (url.username !== '' || url.password !== '')
    return refused(
      'The clone URL must hold no user name, password or token: it is shown in lists. Only repositories that need no login work yet.',
    );
  // Its address is looked up once and handed to git; a final dot would make git look again.
  if (url.hostname.endsWith('.')) return refused('The host name must not end with a dot.');
  if (url.search !== '' || url.hash !== '') return refused('The clone URL must have no query and no fragment.');
  if (/%0[0-9a-f]|%1[0-9a-f]|%7f/i.test(url.pathname)) return refused('The path of the clone URL has a control character.');
  if (url.pathname.length < 2) return refused('The clone URL names no repository, only a host.');
  return { kind: 'ok', url };
}

/** A name for `repos/<name>` from the last part of the URL; null when nothing usable is left. */
export function nameFromUrl(url: URL): string | null {
  const last = url.pathname.replace(/\/+$/, '').split('/').at(-1) ?? '';
  const name = last
    .replace(/\.git$/i, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .replaceAll(/^[^a-z0-9]+|-+$/g, '')
    .slice(0, 63);
  return name === '' ? null : name;
}
