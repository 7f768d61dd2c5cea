/**
 * Owns: where an address that an admin entered may lead (SSRF): a server with access to its own network must not be made to call it.
 * The address is checked when it is entered, and again when it is used; a name is judged by what it resolves to at the moment of the
 * connection, and that very answer is connected to, so that a name cannot change in between.
 * The address of the environment (HEPH_LLM_BASE_URL) is trusted: whoever sets it may do anything here.
 */
import dns from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';

export type AddressClass = 'public' | 'private' | 'loopback' | 'refused';

function ranges(...list: readonly string[]): BlockList {
  const blocked = new BlockList();
  for (const range of list) {
    const [net = '', bits] = range.split('/');
    blocked.addSubnet(net, Number(bits), net.includes(':') ? 'ipv6' : 'ipv4');
  }
  return blocked;
}

const LOOPBACK = ranges('127.0.0.0/8', '::1/128');
const PRIVATE = ranges('10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7');
/** No model is there, whatever is allowed: metadata of clouds, link-local, multicast, reserved, documentation, and IPv6 that wraps IPv4. */
const REFUSED = ranges(
  ...['0.0.0.0/8', '169.254.0.0/16', '100.100.100.200/32', '192.0.0.0/24', '192.0.2.0/24', '198.18.0.0/15', '198.51.100.0/24'],
  ...['203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4', '::/96', 'fe80::/10', 'fec0::/10', 'ff00::/8', 'fd00:ec2::/32'],
  ...['2001::/23', '2001:db8::/32', '2002::/16', '64:ff9b::/96', '64:ff9b:1::/48', '100::/64'],
);

/** `address`: an IPv4 or IPv6 address without brackets. What is none is refused. */
export function classOf(address: string): AddressClass {
  const plain = address.replace(/%.*$/, '');
  const family = isIP(plain);
  if (family === 0) return 'refused';
  // BlockList judges an IPv4 address that is written as IPv6 (::ffff:…) as what it is.
  const within = (list: BlockList) => list.check(plain, family === 4 ? 'ipv4' : 'ipv6');
  if (within(LOOPBACK)) return 'loopback';
  if (within(REFUSED)) return 'refused';
  if (within(PRIVATE)) return 'private';
  return 'public';
}

export interface AddressRules {
  /** HEPH_LLM_ALLOW_PRIVATE: loopback, also without TLS, and private networks. */
  readonly allowPrivate: boolean;
}

function isAllowed(address: string, { allowPrivate }: AddressRules): boolean {
  const found = classOf(address);
  return found === 'public' || (allowPrivate && found !== 'refused');
}

export type BaseUrlCheck = { readonly kind: 'ok'; readonly url: URL } | { readonly kind: 'refused'; readonly why: string };

const PRIVATE_HINT = 'Set HEPH_LLM_ALLOW_PRIVATE=true if a model really is there.';

/** A base URL as an admin entered it. `why` is a sentence for the admin. */
export function checkBaseUrl(text: string, rules: AddressRules): BaseUrlCheck {
  const refused = (why: string): BaseUrlCheck => ({ kind: 'refused', why });
  if (!URL.canParse(text)) return refused('The base URL is no URL. Write it like https://llm.example.com/v1.');
  const url = new URL(text);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const loopback = host === 'localhost' || host.endsWith('.localhost') || (isIP(host) !== 0 && classOf(host) === 'loopback');
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && loopback && rules.allowPrivate))
    return refused('The base URL must begin with https://.');
  if (url.username !== '' || url.password !== '')
    return refused('The base URL must hold no user name and no password. Give the key by itself.');
  if (url.search !== '' || url.hash !== '') return refused('The base URL must have no query and no fragment.');
  if (loopback && !rules.allowPrivate) return refused(`The base URL leads to this machine. ${PRIVATE_HINT}`);
  if (isIP(host) === 0 || isAllowed(host, rules)) return { kind: 'ok', url };
  return refused(
    classOf(host) === 'private'
      ? `The base URL leads into a private network. ${PRIVATE_HINT}`
      : 'The base URL leads to no place for a model.',
  );
}

/** The name resolved to an address that may not be called. */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused';
}

type Resolve = (hostname: string) => Promise<readonly dns.LookupAddress[]>;
const system: Resolve = (hostname) => dns.promises.lookup(hostname, { all: true });

/** Resolves a name for a connection, and fails when any of its addresses may not be called. */
export function guardedLookup(rules: AddressRules, resolve: Resolve = system): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname).then(
      (found) => {
        const wanted = found.filter(({ family }) => !options.family || options.family === family || options.family === `IPv${family}`);
        const first = wanted[0];
        if (!first || !found.every(({ address }) => isAllowed(address, rules))) {
          callback(new AddressRefused('the name leads to an address that may not be called'), '', 0);
        } else if (options.all) callback(null, [...wanted]);
        else callback(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, '', 0),
    );
  };
}
