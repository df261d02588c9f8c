import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createSecretBox, openSecretBox, parseKey } from '../../src/store/secrets.ts';

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

  test('differs each time, and starts with the version of its key', () => {
    const [one, other] = [1, 2].map(() => box.seal('jwt-secret', 'app-1', 'secret'));

    expect(one).not.toEqual(other);
    expect([one?.[0], other?.[0]]).toEqual([1, 1]);
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
