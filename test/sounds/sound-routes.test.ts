// Sounds over HTTP, on a real database.

import { afterEach, describe, expect, test } from 'vitest';
import { createConverter } from '../../src/sounds/converter.ts';
import { createSoundLibrary, createSoundStore } from '../../src/sounds/sound-store.ts';
import { token } from '../api/support.ts';
import { startRig, type TestApp } from '../companion/support.ts';
import { databaseKinds } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { makeWav, sine } from '../support/wav.ts';

const wav = makeWav({ samples: [sine(1_000, 16_000, 500)], rate: 16_000 });

describe.each(databaseKinds)('sounds over HTTP on %s', (kind) => {
  const rig = forSuite(() =>
    startRig(kind, {
      services: async (dependencies, closers) => {
        const converter = createConverter();
        closers.add('converter', () => converter.close());
        const store = createSoundStore(dependencies, { maxSounds: 2, maxBytes: 100_000 });
        return { sounds: createSoundLibrary(store, converter) };
      },
    }),
  );
  afterEach(() => rig.clear());

  const put = async (
    name: string,
    body: Buffer | undefined,
    { as = rig.acme, type = 'audio/wav' }: { as?: TestApp; type?: string } = {},
  ) =>
    await rig.server.inject({
      method: 'PUT',
      url: `/api/public/sounds/${name}`,
      headers: {
        auth: await token({ appId: as.appId }, { secret: as.jwtSecret ?? '' }),
        ...(body === undefined ? {} : { 'content-type': type }),
      },
      ...(body === undefined ? {} : { payload: body }),
    });

  test('uploads, shows, lists and deletes a file', async () => {
    const uploaded = await put('spring-offer', wav);
    const shown = await rig.ask('GET', '/api/public/sounds/spring-offer');
    const listed = await rig.ask('GET', '/api/public/sounds');
    const removed = await rig.ask('DELETE', '/api/public/sounds/spring-offer');
    const again = await rig.ask('DELETE', '/api/public/sounds/spring-offer');

    expect(uploaded.statusCode).toBe(200);
    expect(uploaded.json()).toMatchObject({ name: 'spring-offer', durationMs: 500, bytes: 4_000 });
    expect(shown.json()).toEqual(uploaded.json());
    expect(listed.json()).toEqual({ sounds: [uploaded.json()] });
    expect(removed.json()).toEqual({ name: 'spring-offer', removed: true });
    expect(again.statusCode).toBe(404);
  });

  test.each(['audio/x-wav', 'audio/wave', 'audio/vnd.wave', 'application/octet-stream'])(
    'accepts a file as %s',
    async (type) => {
      expect((await put('any', wav, { type })).statusCode).toBe(200);
    },
  );

  test("answers 404 for another account's sound, and keeps equal names of accounts apart", async () => {
    await put('offer', wav);

    for (const method of ['GET', 'DELETE'] as const) {
      const response = await rig.ask(method, '/api/public/sounds/offer', undefined, {
        as: rig.rival,
      });
      expect(response.statusCode).toBe(404);
    }
    const other = await put('offer', makeWav({ samples: [sine(1_000, 8_000, 100)] }), {
      as: rig.rival,
    });
    expect(other.json()).toMatchObject({ durationMs: 100 });
    const own = await rig.ask('GET', '/api/public/sounds/offer');
    expect(own.json()).toMatchObject({ durationMs: 500 });
  });

  test('answers 400 with the reason for a file that is not a sound', async () => {
    const response = await put('offer', Buffer.from('ID3 is what an MP3 begins with'));

    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({
      errors: [{ path: 'body', message: 'is not a usable sound: not a WAV file (no RIFF header)' }],
    });
  });

  test.each<[string, Buffer | undefined, string, number]>([
    ['nothing', undefined, '', 400],
    ['JSON', Buffer.from('{}'), 'application/json', 415],
    ['an MP3 declared as one', Buffer.from('ID3'), 'audio/mpeg', 415],
    ['more than 10 MiB', Buffer.alloc(10 * 1_024 * 1_024 + 1), 'audio/wav', 413],
  ])('rejects %s', async (_name, body, type, status) => {
    expect((await put('offer', body, { type })).statusCode).toBe(status);
  });

  test('answers 400 for a name that no request could use', async () => {
    const response = await put('spring%20offer', wav);

    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ errors: [{ path: 'soundName' }] });
  });

  test('rejects a further sound of a full account, which may still replace its sounds', async () => {
    await put('one', wav);
    await put('two', wav);
    const third = await put('three', wav);

    expect(third.statusCode).toBe(409);
    expect(third.json()).toMatchObject({ type: 'urn:offhook:problem:conflict' });
    expect((await put('two', wav)).statusCode).toBe(200);
  });

  test('rejects an app without the scope Dialout', async () => {
    expect((await put('offer', wav, { as: rig.powerless })).statusCode).toBe(403);
    const response = await rig.ask('GET', '/api/public/sounds', undefined, { as: rig.powerless });
    expect(response.statusCode).toBe(403);
  });
});
