import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parseKey } from '../../src/store/secret-keys.ts';
import { createSecretBox, openSecretBox } from '../../src/store/secrets.ts';

describe('SECRETS_KEY', () => {
  const key = randomBytes(32);

  test.each([
    ['64 hex digits', key.toString('hex')],
    ['capital hex digits with a line break', `${key.toString('hex').toUpperCase()}\n`],
    ['base64', key.toString('base64')],
    ['base64url without padding', key.toString('base64url')],
  ])('may be %s', (_, text) => {
    expect(parseKey(text, 'SECRETS_KEY')).toEqual(key);
  });

  test.each([
    '',
    'secret',
    randomBytes(16).toString('hex'),
    randomBytes(33).toString('hex'),
    randomBytes(31).toString('base64'),
    'g'.repeat(64),
  ])('is refused if it is not 32 bytes: %s', (text) => {
    expect(() => parseKey(text, 'SECRETS_KEY')).toThrow(/^SECRETS_KEY must be 32 bytes/);
  });
});

describe('a sealed secret', () => {
  const box = createSecretBox(randomBytes(32));

  test.each(['', 'secret', 'ünïcode \u{1f600}'.repeat(1_000)])('opens again', (plain) => {
    const sealed = box.seal('jwt-secret', 'app-1', plain);

    expect(box.open('jwt-secret', 'app-1', sealed)).toBe(plain);
  });

  test('differs each time, and starts with the version and the id of its key', () => {
    const [one, other] = [1, 2].map(() => box.seal('jwt-secret', 'app-1', 'secret'));

    expect(one).not.toEqual(other);
    for (const sealed of [one, other]) expect(sealed?.subarray(0, 6)).toEqual(box.headers.current);
    expect(box.headers.current[0]).toBe(1);
  });

  test('does not open for another purpose or row, or with another key', () => {
    const sealed = box.seal('jwt-secret', 'app-1', 'secret');

    expect(() => box.open('webhook-secret', 'app-1', sealed)).toThrow('does not open');
    expect(() => box.open('jwt-secret', 'app-2', sealed)).toThrow('does not open');
    const stranger = createSecretBox(randomBytes(32));
    expect(() => stranger.open('jwt-secret', 'app-1', sealed)).toThrow('was SECRETS_KEY changed?');
  });

  test('does not open if any byte was changed or cut off', () => {
    const sealed = box.seal('jwt-secret', 'app-1', 'secret');

    for (const [index, byte] of sealed.entries()) {
      const changed = Buffer.from(sealed);
      changed[index] = byte ^ 1;
      expect(() => box.open('jwt-secret', 'app-1', changed)).toThrow('stored secret');
      expect(() => box.open('jwt-secret', 'app-1', sealed.subarray(0, index))).toThrow();
    }
  });
});

describe('while the key changes', () => {
  const [before, after] = [randomBytes(32), randomBytes(32)];
  const both = createSecretBox({ current: after, previous: before });
  const [old, fresh] = [createSecretBox(before), createSecretBox(after)];

  test('values of both keys open', () => {
    for (const box of [old, fresh])
      expect(both.open('jwt-secret', 'a', box.seal('jwt-secret', 'a', 'x'))).toBe('x');
  });

  test('values are sealed with the previous key until the current one may be used', () => {
    const box = createSecretBox({ current: after, previous: before });

    expect(old.open('jwt-secret', 'a', box.seal('jwt-secret', 'a', 'x'))).toBe('x');
    expect(box.sign('result-link', 'x')).toEqual(old.sign('result-link', 'x'));
    box.useCurrentKey();
    expect(fresh.open('jwt-secret', 'a', box.seal('jwt-secret', 'a', 'x'))).toBe('x');
    expect(box.sign('result-link', 'x')).toEqual(fresh.sign('result-link', 'x'));
  });

  test('signatures of both keys are accepted', () => {
    expect(both.signatures('result-link', 'x')).toEqual([
      fresh.sign('result-link', 'x'),
      old.sign('result-link', 'x'),
    ]);
  });

  test('a value is sealed again with the current key, bound to the same row', () => {
    const sealed = both.reseal('jwt-secret', 'a', old.seal('jwt-secret', 'a', 'x'));

    expect(fresh.open('jwt-secret', 'a', sealed)).toBe('x');
    expect(() => fresh.open('jwt-secret', 'b', sealed)).toThrow('it was changed or moved');
  });

  test('a value of a third key is told apart from a damaged one', () => {
    const stranger = createSecretBox(randomBytes(32));
    const keyId = stranger.headers.current.subarray(1).toString('hex');

    expect(() => both.open('jwt-secret', 'a', stranger.seal('jwt-secret', 'a', 'x'))).toThrow(
      `stored secret (jwt-secret) is sealed with another key (${keyId})`,
    );
  });

  test('the two keys must differ', async () => {
    const secretsKey = before.toString('hex');

    await expect(
      openSecretBox({ secretsKey, previousSecretsKey: before.toString('base64'), dataDir: '' }),
    ).rejects.toThrow('SECRETS_KEY_PREVIOUS is the same key as SECRETS_KEY');
  });
});

describe('without SECRETS_KEY', () => {
  let dataDir: string;

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'offhook-test-secrets-'));
  });

  afterEach(() => rm(dataDir, { recursive: true, force: true }));

  test('creates a key once, in a file that no other user may read', async () => {
    const boxes = await Promise.all([1, 2, 3, 4].map(() => openSecretBox({ dataDir })));
    const later = await openSecretBox({ dataDir });

    const sealed = boxes.map((box) => box.seal('jwt-secret', 'app-1', 'secret'));
    expect(sealed.map((each) => later.open('jwt-secret', 'app-1', each))).toEqual(
      Array(4).fill('secret'),
    );
    expect((await stat(join(dataDir, 'secrets.key'))).mode & 0o777).toBe(0o600);
  });

  test('reports a damaged key file by name, and leaves it unchanged', async () => {
    const path = join(dataDir, 'secrets.key');
    await writeFile(path, 'half a ke');

    await expect(openSecretBox({ dataDir })).rejects.toThrow(`${path} must be 32 bytes`);
    expect(await readFile(path, 'utf8')).toBe('half a ke');
  });
});
