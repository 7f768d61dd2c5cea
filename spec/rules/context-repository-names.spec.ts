/**
 * What a load and a clone URL may be called: judged without git, and against git where git has a judgement of its own.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { checkCloneUrl, nameFromUrl } from '../../src/context/loaders/git/clone-url.ts';
import { isRefName, parseLoadName } from '../../src/context/loaders/git/ref-names.ts';

describe('the name of a load', () => {
  it('is a ref that git itself takes, and never one that reads like an option', async function () {
    this.timeout(30_000);
    const names = [
      ...['main', 'feature/x', 'v1.0', 'ü/ä', 'a@b', 'request/12', 'x'.repeat(200), 'a-', 'a.b', '@x', 'a/-b'],
      ...[
        '',
        '-x',
        '--upload-pack=touch /tmp/x',
        'a..b',
        'a b',
        'a~1',
        'a^',
        'a:b',
        'a?',
        'a*',
        'a[b',
        'a\\b',
        'a@{1}',
        '/a',
        'a/',
        'a//b',
      ],
      ...['.a', 'a/.b', 'a.', 'a.lock', 'a.lock/b', 'a\u0001b', 'a\u007fb', 'a\nb', '@'],
    ];
    for (const name of names) {
      const byGit = await promisify(execFile)('git', ['check-ref-format', `refs/heads/${name}`]).then(
        () => true,
        () => false,
      );
      const asBranch = byGit && !name.startsWith('-') && name !== '@'; // git takes these two below refs/heads/, and nowhere else
      expect(isRefName(name), name).to.equal(asBranch);
    }
    expect(isRefName('x'.repeat(201))).to.equal(false);
    expect(isRefName('a\ud800')).to.equal(false);
  });

  it('is a repository, and behind @ a ref', () => {
    expect(parseLoadName('heph')).to.deep.equal({ repository: 'heph', ref: null });
    expect(parseLoadName('heph@feature/x')).to.deep.equal({ repository: 'heph', ref: 'feature/x' });
    expect(parseLoadName('a.b_c-1@v1@2')).to.deep.equal({ repository: 'a.b_c-1', ref: 'v1@2' });
    for (const bad of ['', '@main', 'Heph', '-x', '.git', 'a/b', 'heph@', 'heph@-x', 'heph@--upload-pack=x', 'heph@a b', 'heph@a..b'])
      expect(parseLoadName(bad), bad).to.equal(null);
  });
});

describe('a clone URL', () => {
  const check = (url: string, allowFile = false) => {
    const checked = checkCloneUrl(url, { allowFile });
    return checked.kind === 'ok' ? 'ok' : checked.why;
  };

  it('is taken when it begins with https and holds no secret', () => {
    expect(check('https://git.example.com/team/project.git')).to.equal('ok');
    expect(check('https://git.example.com:8443/project')).to.equal('ok');
    expect(check('file:///srv/project.git', true)).to.equal('ok');
  });

  it('is refused with what to change', () => {
    for (const [url, why] of [
      ['git@github.com:team/project.git', 'over https only'],
      ['ssh://git@example.com/x.git', 'over https only'],
      ['git://example.com/x.git', 'over https only'],
      ['http://git.example.com/x.git', 'begin with https'],
      ['ext::sh -c touch% /tmp/x', 'begin with https'],
      ['https://ada:token@git.example.com/x.git', 'no user name, password or token'],
      ['https://token@git.example.com/x.git', 'no user name, password or token'],
      ['file:///srv/project.git', 'HEPH_GIT_ALLOW_FILE'],
      ['/srv/project.git', 'no clone URL'],
      ['--upload-pack=touch /tmp/x', 'no clone URL'],
      ['https://git.example.com', 'names no repository'],
      ['https://git.example.com/x?y=1', 'no query'],
      ['https://git.example.com/x#y', 'no query and no fragment'],
      ['https://git.example.com./x', 'end with a dot'],
      ['https://git.example.com/a%0ab', 'control character'],
      [`https://git.example.com/${'x'.repeat(2_000)}`, 'no clone URL'],
    ] as const)
      expect(check(url), url).to.include(why);
  });

  it('gives a repository its name', () => {
    const named = (url: string) => nameFromUrl(new URL(url));
    expect(named('https://e.com/Team/My%20Project.GIT')).to.equal('my-20project');
    expect(named('https://e.com/x/.github/')).to.equal('github');
    expect(named('https://e.com/---')).to.equal(null);
    expect(named(`https://e.com/${'a'.repeat(100)}`)).to.equal('a'.repeat(63));
  });
});
