/** Sealed secrets: they open with their key, for their row, and with nothing else. */
import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { SecretBox, SecretError } from '../../src/kernel/secret-box.ts';

const [KEY, NEW_KEY] = [randomBytes(32), randomBytes(32)];
const SECRET = 'sk-of-the-provider';

describe('a sealed secret', () => {
  const box = new SecretBox({ current: KEY, old: null });

  it('opens for its row, is never the same twice and holds no word of it', () => {
    const [one, two] = [box.seal(SECRET, 'row-1'), box.seal(SECRET, 'row-1')];
    expect(box.open(one, 'row-1')).to.equal(SECRET);
    expect(one.equals(two)).to.equal(false);
    expect(one.includes(SECRET)).to.equal(false);
  });

  it('does not open for another row, or when a byte of it was changed', () => {
    const sealed = box.seal(SECRET, 'row-1');
    expect(() => box.open(sealed, 'row-2')).to.throw(SecretError, 'Store it again');
    for (let at = 0; at < sealed.length; at++) {
      const broken = Buffer.from(sealed);
      broken[at] = (broken[at] ?? 0) ^ 1;
      expect(() => box.open(broken, 'row-1'), `byte ${at}`).to.throw(SecretError);
    }
    expect(() => box.open(Buffer.alloc(3), 'row-1')).to.throw(SecretError);
  });

  it('opens with the old key during a rotation, and is told to be old', () => {
    const sealed = box.seal(SECRET, 'row-1');
    const both = new SecretBox({ current: NEW_KEY, old: KEY });
    expect(both.open(sealed, 'row-1')).to.equal(SECRET);
    expect([both.isOld(sealed), both.isOld(both.seal(SECRET, 'row-1')), box.isOld(sealed)]).to.deep.equal([true, false, false]);
    expect(() => new SecretBox({ current: NEW_KEY, old: null }).open(sealed, 'row-1')).to.throw(SecretError, 'HEPH_SECRET_KEY_OLD');
  });

  it('is not made without a key', () => {
    const none = new SecretBox({ current: null, old: null });
    expect(none.canSeal).to.equal(false);
    expect(() => none.seal(SECRET, 'row-1')).to.throw(SecretError, 'HEPH_SECRET_KEY');
  });
});
