// Events over HTTP: the form of a stream, access to it, and waiting for the context of a call.

import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { CallContext } from '../../src/calls/contract/call-context.ts';
import type { CallEvent } from '../../src/calls/contract/call-event.ts';
import type { CallDetails } from '../../src/interactions/call-queries.ts';
import type { LiveEvents } from '../../src/live/live-events.ts';
import { eventually } from '../support/eventually.ts';
import {
  apps,
  emptySummary,
  type Harness,
  type ProblemDocument,
  startHarness,
  token,
} from './support.ts';

type Followed = Parameters<LiveEvents['follow']>;

const callId = 'call-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10';
const heard = (...amd: CallContext['session']['UserSession']['amd']): CallContext => ({
  session: { UserSession: { amd, amdInfo: {} } },
  metadata: { b: 1, a: 2 },
});
const human = { event: 'amd_human_detected', reason: 'short-greeting', elapsedMs: 900 } as const;
const humanDetected = { type: 'amd', callId, data: { amd: human } } as unknown as CallEvent;

let harness: Harness;
let base: string;
let followed: Followed[];
/** The pieces that the next followers get, one after the other. Then they wait for their signal. */
let source: (how: Followed[2]) => AsyncIterable<{ text: string; event?: CallEvent }>;
let context: CallContext;

beforeEach(async () => {
  followed = [];
  source = async function* () {};
  context = heard();
  harness = await startHarness({
    live: {
      async *follow(...asked) {
        followed.push(asked);
        const [, , how] = asked;
        yield [{ text: 'id: here\n\n' }];
        for await (const chunk of source(how)) yield [chunk];
        if (!how.signal.aborted) await once(how.signal, 'abort');
      },
    },
    calls: {
      list: async () => ({ calls: [], searched: {} }),
      summary: async (_scope, period) => emptySummary(period),
      callers: () => Promise.reject(new Error('not part of this test')),
      state: async () => undefined,
      details: async ({ accountId }) =>
        accountId === 'acme' ? ({ callId, state: 'answered' } as CallDetails) : undefined,
      context: async ({ accountId }) => (accountId === 'acme' ? context : undefined),
      notifications: async () => undefined,
    },
  });
  base = await harness.server.listen({ host: '127.0.0.1', port: 0 });
});

afterEach(() => harness[Symbol.asyncDispose]());

async function open(path: string, headers: Readonly<Record<string, string>> = {}) {
  const leaving = new AbortController();
  const response = await fetch(`${base}${path}`, {
    headers: { auth: await token(), accept: 'text/event-stream', ...headers },
    signal: leaving.signal,
  });
  return { response, leave: () => leaving.abort() };
}

const events = '/api/public/bot/st-1/events';

describe('an event stream', () => {
  test('is limited to the account and the bot, and continues after the cursor', async () => {
    const { response, leave } = await open(events, { 'last-event-id': 'where-it-stood' });

    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('no-store');
    const reader = response.body?.getReader();
    expect(Buffer.from((await reader?.read())?.value ?? '').toString()).toBe('id: here\n\n');
    expect(followed[0]?.slice(0, 2)).toEqual([
      { accountId: 'acme', botIds: ['st-1'] },
      'where-it-stood',
    ]);
    leave();
    await eventually(() => followed[0]?.[2].signal.aborted === true, 'the follower left');
  });

  test('may follow one call', async () => {
    const { response, leave } = await open(`/api/public/bot/st-1/calls/${callId}/events`);

    expect(response.status).toBe(200);
    expect(followed[0]?.[0]).toEqual({ accountId: 'acme', botIds: ['st-1'], callId });
    leave();
  });

  test.each([
    ['without a token', events, { auth: '' }, 401],
    ['for a client that accepts only JSON', events, { accept: 'application/json' }, 406],
    // A client without access learns nothing, not even the form of the answer.
    [
      'without a token, for a client that accepts only JSON',
      events,
      { auth: '', accept: 'application/json' },
      401,
    ],
    ['of a bot of another app', '/api/public/bot/st-2/events', {}, 404],
    [
      'of a bot of another app, in JSON',
      '/api/public/bot/st-2/events',
      { accept: 'application/json' },
      404,
    ],
    ['of an unknown call', '/api/public/bot/st-1/calls/nothing/events', {}, 404],
  ])('%s is refused', async (_, path, headers, status) => {
    const { response } = await open(path, headers);

    expect(response.status).toBe(status);
    expect(response.headers.get('content-type')).toMatch('application/problem+json');
  });

  test('is one of at most fifty of an app; a client that leaves makes room', async () => {
    const opened = await Promise.all(Array.from({ length: 50 }, () => open(events)));
    expect(opened.map(({ response }) => response.status)).toEqual(Array(50).fill(200));

    const { response } = await open(events);
    expect(response.status).toBe(429);
    expect(response.headers.get('retry-after')).toBe('15');
    expect(((await response.json()) as ProblemDocument).detail).toMatch('50 event connections');

    opened[0]?.leave();
    await eventually(async () => {
      const again = await open(events);
      const isOpen = again.response.status === 200;
      again.leave();
      return isOpen;
    }, 'another stream may be opened');
    for (const { leave } of opened) leave();
  });

  test('of a revoked app ends at the next piece', async () => {
    const find = apps['app-1'];
    let go = (): void => undefined;
    source = async function* () {
      await new Promise<void>((resolve) => (go = resolve));
      yield { text: 'data: secret\n\n' };
    };
    const { response } = await open(events);
    Object.assign(apps, { 'app-1': undefined });
    try {
      await eventually(() => {
        go();
        return followed[0]?.[2].signal.aborted === true;
      }, 'the stream ended');
      expect(await response.text()).toBe('id: here\n\n');
    } finally {
      Object.assign(apps, { 'app-1': find });
    }
  });

  test('ends at once for a client that does not read', async () => {
    const piece = 'x'.repeat(65_536);
    let written = 0;
    source = async function* ({ onTooSlow, signal }) {
      // The follower does this with a client that has not read a mebibyte.
      const timer = setInterval(() => {
        if (written > 0) onTooSlow();
      }, 200);
      signal.addEventListener('abort', () => clearInterval(timer));
      for (;;) {
        written += piece.length;
        yield { text: piece };
      }
    };
    const socket = connect(Number(new URL(base).port), '127.0.0.1');
    socket.on('error', () => undefined);
    socket.pause();
    socket.write(`GET ${events} HTTP/1.1\r\nhost: localhost\r\nauth: ${await token()}\r\n\r\n`);

    await eventually(() => followed[0]?.[2].signal.aborted === true, 'the reader was cut off');
    socket.destroy();
  });

  test('ends when the gateway closes', async () => {
    const { response } = await open(events);

    await harness.server.close();

    expect(await response.text()).toBe('id: here\n\n');
  });
});

describe('waiting for the context of a call', () => {
  const path = `/api/public/bot/st-1/calls/${callId}/context`;
  const ask = async (query: string, headers: Readonly<Record<string, string>> = {}) => {
    const response = await fetch(`${base}${path}${query}`, {
      headers: { auth: await token(), ...headers },
    });
    return {
      status: response.status,
      tag: response.headers.get('etag'),
      body: await response.json(),
    };
  };

  test('ends when detection reports something', async () => {
    source = async function* () {
      yield { text: '', event: { type: 'dtmf', callId, data: {} } as unknown as CallEvent };
      yield { text: '', event: humanDetected };
    };

    const { body } = await ask('?wait=30s');

    expect(body).toEqual({
      session: {
        UserSession: { amd: ['amd_human_detected'], amdInfo: { amdEvents: [human] } },
      },
      metadata: { b: 1, a: 2 },
    });
    expect(followed[0]?.[0]).toEqual({ accountId: 'acme', botIds: ['st-1'], callId });
  });

  test('answers a new context at once, and an unchanged one after the wait', async () => {
    context = heard('amd_human_detected');
    expect((await ask('?wait=30s')).body).toEqual(context);
    const { tag } = await ask('');
    expect(followed).toEqual([]);

    const same = await ask('?wait=1s', { 'if-none-match': tag ?? '' });

    expect(same).toEqual({ status: 200, tag, body: context });
  });

  test('compares contexts by their content, not by the order of members', async () => {
    const { tag } = await ask('');
    context = { metadata: { a: 2, b: 1 }, session: context.session };
    expect((await ask('')).tag).toBe(tag);
    context = heard('amd_stopped');
    expect((await ask('')).tag).not.toBe(tag);
  });

  test.each(['?wait=31s', '?wait=5', '?wait=-1s', '?after=1'])(
    'with the query %s is a 400',
    async (query) => {
      expect((await ask(query)).status).toBe(400);
    },
  );
});
