// Sounds of accounts in SQL: storing, limits, and loading for calls.

import { createHash } from 'node:crypto';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { silentLogger } from '../../src/lib/logger.ts';
import { createSoundLoader } from '../../src/sounds/sound-loader.ts';
import { createSoundStore } from '../../src/sounds/sound-store.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { testSound } from '../support/test-sound.ts';

const noon = new Date('2026-03-01T12:00:00.000Z');
const limits = { maxSounds: 5, maxBytes: 1_000 };

describe.each(databaseKinds)('sounds on %s', (kind) => {
  let now = noon;
  const database = forSuite(() => openTestDatabase(kind));
  const store = forSuite(() => createSoundStore({ database, clock: { now: () => now } }, limits));
  afterEach(async () => {
    now = noon;
    await database.pool.query('delete from sounds');
  });

  test('are created, replaced, listed by name and deleted, separately for each account', async () => {
    const created = await store.put('acme', 'b', new Uint8Array(80));
    now = new Date(noon.getTime() + 1);
    const replaced = await store.put('acme', 'b', new Uint8Array(160));
    await store.put('acme', 'B', new Uint8Array(8));
    await store.put('rival', 'a', new Uint8Array(8));

    expect(created).toMatchObject({ kind: 'created', sound: { durationMs: 10 } });
    const sha256 = createHash('sha256').update(new Uint8Array(160)).digest('hex');
    const b = { name: 'b', bytes: 160, durationMs: 20, sha256, createdAt: noon, updatedAt: now };
    expect(replaced).toEqual({ kind: 'replaced', sound: b });
    expect((await store.list('acme')).map(({ name }) => name)).toEqual(['B', 'b']);
    expect(await store.find('acme', 'b')).toEqual(b);
    expect(await store.find('rival', 'b')).toBeUndefined();
    expect(await store.remove('rival', 'b')).toBe(false);
    expect(await store.remove('acme', 'b')).toBe(true);
    expect(await store.find('acme', 'b')).toBeUndefined();
  });

  test('come back byte for byte', async () => {
    const mulaw = Uint8Array.from({ length: 256 }, (_, byte) => byte);
    await store.put('acme', 'all', mulaw);

    expect(Uint8Array.from((await store.read('acme', 'all'))?.mulaw ?? [])).toEqual(mulaw);
  });

  test('never exceed the number of an account’s limit, however many are uploaded at once', async () => {
    const puts = await Promise.all(
      Array.from({ length: 20 }, (_, index) => store.put('acme', `s-${index}`, new Uint8Array(8))),
    );

    expect(puts.filter(({ kind }) => kind === 'created')).toHaveLength(5);
    expect(puts.filter(({ kind }) => kind === 'full')).toHaveLength(15);
    expect(await store.list('acme')).toHaveLength(5);
    expect(await store.put('rival', 'first', new Uint8Array(8))).toMatchObject({ kind: 'created' });
  });

  test('never exceed the bytes of an account’s limit, which does not count a replaced sound', async () => {
    const puts = await Promise.all(
      ['a', 'b', 'c', 'd'].map((name) => store.put('acme', name, new Uint8Array(400))),
    );
    const kept = await store.list('acme');

    expect(puts.filter(({ kind }) => kind === 'full')).toHaveLength(2);
    expect(kept).toHaveLength(2);
    const [first] = kept;
    expect(await store.put('acme', first?.name ?? '', new Uint8Array(600))).toMatchObject({
      kind: 'replaced',
    });
    expect(await store.put('acme', first?.name ?? '', new Uint8Array(601))).toMatchObject({
      kind: 'full',
    });
  });

  describe('as calls load them', () => {
    const reads: string[] = [];
    const load = (reference: string, accountId = 'acme') => loader.loadSound(accountId, reference);
    let loader: ReturnType<typeof createSoundLoader>;
    beforeAll(() => {
      const counted = {
        version: (accountId: string, name: string) => store.version(accountId, name),
        read: (accountId: string, name: string) => {
          reads.push(name);
          return store.read(accountId, name);
        },
      };
      loader = createSoundLoader({
        store: counted,
        urls: { load: () => Promise.reject(new Error('not asked')) },
        logger: silentLogger,
      });
    });
    afterEach(() => {
      reads.length = 0;
    });

    test('are read once for many calls, and shared between threads', async () => {
      await store.put('acme', 'hello', new Uint8Array(160).fill(7));

      const results = await Promise.all(Array.from({ length: 5 }, () => load('sound:hello')));
      results.push(await load('sound:hello'));

      for (const result of results) {
        expect(result).toEqual({
          ok: true,
          sound: testSound('sound:hello', new Uint8Array(160).fill(7)),
        });
        expect(result.ok && result.sound.mulaw.buffer).toBeInstanceOf(SharedArrayBuffer);
      }
      expect(reads).toEqual(['hello']);
    });

    test('are the new versions after a replacement, and missing after a deletion', async () => {
      await store.put('acme', 'offer', new Uint8Array(8).fill(1));
      const before = await load('sound:offer');
      await store.put('acme', 'offer', new Uint8Array(8).fill(2));
      const after = await load('sound:offer');
      await store.remove('acme', 'offer');

      expect(before.ok && before.sound.mulaw[0]).toBe(1);
      expect(after.ok && after.sound.mulaw[0]).toBe(2);
      expect(await load('sound:offer')).toEqual({ ok: false, reason: 'There is no sound offer' });
    });

    test('are never those of another account', async () => {
      await store.put('acme', 'offer', new Uint8Array(8));
      await load('sound:offer');

      expect(await load('sound:offer', 'rival')).toEqual({
        ok: false,
        reason: 'There is no sound offer',
      });
    });
  });
});
