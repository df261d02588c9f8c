// The state of the servers in the console, which operators need most while the database is away.

import { beforeEach, describe, expect, test } from 'vitest';
import type { SessionStore } from '../../src/console/session-store.ts';
import { createSessionReader, type SessionReader } from '../../src/console/sessions.ts';
import type { ServerStatus } from '../../src/servers/server-line.ts';
import { app } from '../api/support.ts';
import { asker, startConsole } from './support.ts';

const minuteMs = 60_000;
const operator = app({ appId: 'operator', scopes: ['Dialout', 'Operate'] });
const openedBy = operator.apiKeyIds;
const host = 'calls.example.com';
const signedIn = { method: 'GET', headers: { host, cookie: `__Host-offhook=${'s'.repeat(43)}` } };

let isAway: boolean;
let isKnownAway: boolean;
let hasEnded: boolean;
let nowMs: number;
let reader: SessionReader;

const unused = () => Promise.reject(new Error('this is not part of the test'));

/** A store that works, hangs, fails, or has no such session. */
function storeOfSessions(): SessionStore {
  return {
    ...{ createLink: unused, findLink: unused, redeem: unused, end: async () => undefined },
    async find() {
      if (isAway) throw new Error('connection refused');
      if (hasEnded) return undefined;
      return { appId: operator.appId, openedBy, expiresAt: new Date('2026-11-20T16:00:00Z') };
    },
  };
}

beforeEach(() => {
  isAway = false;
  isKnownAway = false;
  hasEnded = false;
  nowMs = 1_000;
  reader = createSessionReader(
    {
      sessions: storeOfSessions(),
      appNow: async () => operator,
      address: { publicUrl: 'https://calls.example.com', host: '127.0.0.1' },
      isDatabaseAway: () => isKnownAway,
    },
    () => nowMs,
  );
});

describe('while the database is away', () => {
  test('a session that was valid a few minutes ago is recalled, but only for the page about outages', async () => {
    const { secret } = await reader.read(signedIn);
    isAway = true;

    expect(await reader.readOrRecall(signedIn)).toMatchObject({ app: operator, secret });
    await expect(reader.read(signedIn)).rejects.toThrow('connection refused');
  });

  test('nobody waits for a database that is known to be away', async () => {
    await reader.read(signedIn);
    isKnownAway = true;
    hasEnded = true;

    expect(await reader.readOrRecall(signedIn)).toMatchObject({ app: operator });
  });

  test('a session that this process has not seen is not recalled', async () => {
    isAway = true;
    isKnownAway = true;

    await expect(reader.readOrRecall(signedIn)).rejects.toThrow('connection refused');
  });

  test('nor one that was last valid a quarter of an hour ago', async () => {
    await reader.read(signedIn);
    isAway = true;
    nowMs += 15 * minuteMs;
    await reader.readOrRecall(signedIn);
    nowMs += 1;

    await expect(reader.readOrRecall(signedIn)).rejects.toThrow('connection refused');
  });

  test('nor one that has ended', async () => {
    const known = await reader.read(signedIn);
    hasEnded = true;
    await expect(reader.readOrRecall(signedIn)).rejects.toThrow('Sign in');
    isAway = true;
    await expect(reader.readOrRecall(signedIn)).rejects.toThrow('connection refused');

    isAway = false;
    hasEnded = false;
    await reader.read(signedIn);
    reader.forget(known);
    isAway = true;
    await expect(reader.readOrRecall(signedIn)).rejects.toThrow('connection refused');
  });
});

describe('GET /console/api/operate/servers', () => {
  const servers: readonly ServerStatus[] = [
    {
      ...{ id: 'nats', kind: 'nats', name: 'NATS', state: 'away' },
      ...{ since: new Date('2026-11-20T08:00:00Z'), affects: 'Calls continue.' },
    },
  ];

  test.each([
    ['an operator', operator, 200],
    ['any other app', app({ appId: 'operator' }), 404],
    ['nobody', undefined, 401],
  ])('%s', async (_who, who, status) => {
    const rows = who === undefined ? [] : [{ app_id: 'operator', opened_by: openedBy }];
    await using harness = await startConsole({
      database: { pool: { query: async () => ({ rows }) } as never },
      now: () => new Date('2026-11-20T08:00:00Z'),
      services: {},
      options: { appNow: async () => who, servers: () => servers },
    });

    const { cookie } = signedIn.headers;
    const answer = await asker(harness)('GET', '/api/operate/servers', { cookie });
    expect(answer.statusCode).toBe(status);
    if (status === 200) {
      expect(answer.json()).toEqual({
        servers: [{ ...servers[0], since: '2026-11-20T08:00:00.000Z' }],
      });
    }
  });
});
