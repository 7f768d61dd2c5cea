/**
 * Where an address that an admin entered may lead: nowhere into the network of the server, whatever it is called.
 */
import { expect } from 'chai';
import { AddressRefused, checkBaseUrl, classOf, guardedLookup } from '../../src/gateway/base-url.ts';

const STRICT = { allowPrivate: false };
const PRIVATE = { allowPrivate: true };

describe('the base URL of a connection that an admin adds', () => {
  it('may be any https address of the internet', () => {
    for (const good of [
      'https://llm.example.com/v1',
      'https://llm.example.com:8443',
      'https://8.8.8.8/v1',
      'https://[2606:4700::1111]/v1',
    ]) {
      expect(checkBaseUrl(good, STRICT).kind, good).to.equal('ok');
    }
  });

  it('may not lead into the network of the server, in whichever spelling', () => {
    for (const bad of [
      ...['https://127.0.0.1', 'https://2130706433', 'https://0x7f.1', 'https://0177.0.0.1', 'https://localhost', 'https://a.localhost'],
      ...[
        'https://[::1]',
        'https://[::ffff:127.0.0.1]',
        'https://[::ffff:a9fe:a9fe]',
        'https://0.0.0.0',
        'https://[::]',
        'https://10.1.2.3',
      ],
      ...['https://172.31.255.255', 'https://192.168.0.1', 'https://100.64.0.1', 'https://[fd00::1]', 'https://[fe80::1]'],
      ...['https://169.254.169.254', 'https://100.100.100.200', 'https://[fd00:ec2::254]', 'https://224.0.0.1', 'https://255.255.255.255'],
      ...['https://[64:ff9b::7f00:1]', 'https://[2002:7f00:1::]', 'https://198.18.0.1'],
    ]) {
      expect(checkBaseUrl(bad, STRICT).kind, bad).to.equal('refused');
    }
  });

  it('holds no secret, no query and no other scheme', () => {
    for (const [bad, said] of [
      ['http://llm.example.com', /https/],
      ['ftp://llm.example.com', /https/],
      ['https://user:hunter2@llm.example.com', /no password/],
      ['https://key@llm.example.com', /no user name/],
      ['https://llm.example.com/v1?key=hunter2', /no query/],
      ['https://llm.example.com/#x', /no fragment/],
      ['llm.example.com', /no URL/],
    ] as const) {
      const checked = checkBaseUrl(bad, PRIVATE);
      expect(checked.kind === 'refused' && checked.why, bad)
        .to.match(said)
        .and.not.include('hunter2');
    }
  });

  it('may be this machine or a private network when that is allowed, and never the metadata of a cloud', () => {
    for (const good of ['http://127.0.0.1:11434/v1', 'http://localhost:11434', 'https://10.0.0.5', 'https://[fd00::1]']) {
      expect(checkBaseUrl(good, PRIVATE).kind, good).to.equal('ok');
    }
    for (const bad of ['http://10.0.0.5', 'https://169.254.169.254', 'https://[fd00:ec2::254]', 'https://0.0.0.0', 'https://[fe80::1]']) {
      expect(checkBaseUrl(bad, PRIVATE).kind, bad).to.equal('refused');
    }
  });

  it('is judged by what its name leads to at the moment of the connection, and is connected to that', async () => {
    const answers = new Map([
      ['good.example', ['8.8.8.8', '2606:4700::1111']],
      ['rebinds.example', ['8.8.8.8', '169.254.169.254']],
      ['inside.example', ['10.0.0.1']],
      ['nowhere.example', []],
    ]);
    const lookup = guardedLookup(STRICT, async (name) =>
      (answers.get(name) ?? []).map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
    const ask = (name: string, all: boolean) =>
      new Promise((resolve) => lookup(name, { all }, (error, found, family) => resolve(error ?? (all ? found : [found, family]))));
    expect(await ask('good.example', false)).to.deep.equal(['8.8.8.8', 4]);
    expect(await ask('good.example', true)).to.have.length(2);
    for (const bad of ['rebinds.example', 'inside.example', 'nowhere.example']) {
      expect(await ask(bad, true), bad).to.be.instanceOf(AddressRefused);
    }
  });

  it('names no class for what is no address', () => {
    expect(['', 'localhost', '1.2.3', '::g', '8.8.8.8'].map(classOf)).to.deep.equal(['refused', 'refused', 'refused', 'refused', 'public']);
  });
});
