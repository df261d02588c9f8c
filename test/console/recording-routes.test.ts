// What the console's page needs to play a recording: bytes and metadata with the session's cookie.

import { expect, test } from 'vitest';
import { createCallQueries } from '../../src/interactions/stored-calls.ts';
import { app, token } from '../api/support.ts';
import { acceptedCall } from '../support/call-records.ts';
import { openTestDatabase } from '../support/databases.ts';
import { startTestRecordings } from '../support/recordings.ts';
import { insertRows } from '../support/tables.ts';
import { asker, cookieOf, origin, startConsole } from './support.ts';

const metadata = {
  ...{ version: 1, callId: 'call-1', accountId: 'acme', botId: 'st-1' },
  ...{ startedAt: '2026-11-28T12:00:00.000Z', endedAt: '2026-11-28T12:00:12.000Z' },
  ...{ durationMs: 12_000, pausedMs: 0, sampleRateHz: 8_000, encoding: 'mulaw' },
  ...{ channels: ['heard', 'said'], fill: 'cut', pauses: [], gaps: [], file: 'call-1.wav' },
  ...{ bytes: 100, sha256: 'abc', incomplete: false },
};

test('the page plays, inspects and deletes a recording by its session, within the app’s scopes', async () => {
  await using database = await openTestDatabase('pglite');
  const recordings = await startTestRecordings();
  await using _stopped = { [Symbol.asyncDispose]: () => recordings.stop() };
  const known: Record<string, ReturnType<typeof app>> = {
    'app-1': app({ scopes: ['Dialout', 'Recordings'] }),
    'app-without-scope': app({ appId: 'app-without-scope' }),
    'app-of-others': app({
      ...{ appId: 'app-of-others', accountId: 'other', bots: ['*'] },
      scopes: ['Dialout', 'Recordings'],
    }),
  };
  const appNow = async (appId: string) => known[appId];
  await using harness = await startConsole({
    database,
    now: () => new Date(),
    services: {
      apps: { find: appNow, findByApiKey: async () => undefined },
      recordings: recordings.servicesOf(database),
      calls: createCallQueries(database),
    },
    options: { appNow },
  });
  const ask = asker(harness);
  const signIn = async (appId: string) => {
    const { url } = (await ask('POST', '/link', { auth: await token({ appId }) }, {})).json<{
      url: string;
    }>();
    const answer = await ask('POST', '/session', { origin }, { token: url.replace(/.*=/, '') });
    return { cookie: cookieOf(answer), token: answer.json<{ pageToken: string }>().pageToken };
  };
  const call = acceptedCall({ accountId: 'acme', botId: 'st-1' });
  const at = call.acceptedAt;
  await insertRows(database.pool, 'calls', [
    {
      ...{ ...call, state: 'ended', status: 'completed', dialBefore: at, endedAt: at },
      ...{ outcome: 'completed', endPublishedAt: at, lastEventSequence: 8 },
    },
  ]);
  // The same bytes stand for the audio.
  await recordings.add(database, call, Buffer.from(JSON.stringify(metadata)));
  const audio = `/api/public/bot/st-1/calls/${call.callId}/recording`;
  const about = `/api/calls/${call.callId}/recording.json`;
  const { cookie, token: pageToken } = await signIn('app-1');

  const range = { range: 'bytes=0-9', accept: '*/*', 'sec-fetch-site': 'same-origin' };
  const part = await ask('GET', audio, { cookie, ...range });
  expect([part.statusCode, part.payload]).toEqual([206, '{"version"']);
  expect((await ask('GET', about, { cookie })).json()).toEqual(metadata);
  for (const path of [audio, about]) {
    expect((await ask('GET', path)).statusCode, path).toBe(401);
    const elsewhere = { cookie, 'sec-fetch-site': 'same-site' };
    expect((await ask('GET', path, elsewhere)).statusCode, path).toBe(403);
    const powerless = await signIn('app-without-scope');
    expect((await ask('GET', path, { cookie: powerless.cookie })).statusCode, path).toBe(403);
    const others = await signIn('app-of-others');
    const { statusCode } = await ask('GET', path, { cookie: others.cookie });
    expect([403, 404], path).toContain(statusCode);
  }

  expect((await ask('DELETE', audio, { cookie, origin })).statusCode).toBe(403);
  const changing = { cookie, origin, 'x-console-token': pageToken };
  expect((await ask('DELETE', audio, changing)).statusCode).toBe(200);
  expect((await ask('GET', audio, { cookie })).statusCode).toBe(404);
  expect((await ask('GET', about, { cookie })).statusCode).toBe(404);
});
