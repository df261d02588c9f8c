import { describe, expect, test } from 'vitest';
import type { CallSource } from '../../src/calls/dialout-ports.ts';
import { type AnswerCommand, serveCommands } from '../../src/events/commands.ts';
import type { EventConnection } from '../../src/events/connection.ts';
import { sendDialHint, serveDialHints } from '../../src/events/hints.ts';
import { commandSubject, hintSubject } from '../../src/events/subjects.ts';
import { silentLogger as logger } from '../../src/lib/logger.ts';
import { eventually } from '../support/eventually.ts';
import { startTestNats } from '../support/nats.ts';
import { forSuite } from '../support/opened.ts';
import { ensureStreams } from '../support/streams.ts';

const nats = forSuite(startTestNats);

async function newStreams(): Promise<EventConnection> {
  const connection = await nats.connect();
  await ensureStreams(connection, { eventDays: 1, contextHours: 1 });
  return connection;
}

describe('hints that calls are waiting', () => {
  test('reach one of the listeners, with or without a trunk', async () => {
    const connection = await newStreams();
    const woken: CallSource[] = [];
    const listeners = [1, 2, 3].map(() =>
      serveDialHints(connection, (source) => void woken.push(source), logger),
    );
    sendDialHint(connection, 'carrier');
    sendDialHint(connection, undefined);
    await eventually(() => woken.length === 2, 'both are there');

    expect(woken).toEqual(['carrier', undefined]);
    for (const listener of listeners) listener.stop();
  });

  test('are ignored if they are not valid', async () => {
    const connection = await newStreams();
    const woken: CallSource[] = [];
    const listener = serveDialHints(connection, (source) => void woken.push(source), logger);
    for (const body of ['', '{', '[]', '{"trunk":7}']) {
      connection.nats.publish(hintSubject(connection.prefix), body);
    }
    sendDialHint(connection, 'carrier');
    await eventually(() => woken.includes('carrier'), 'the good one is there');

    expect(woken).toEqual(['carrier']);
    listener.stop();
  });
});

describe('commands', () => {
  async function serving(handler: AnswerCommand) {
    const connection = await nats.connect();
    const server = serveCommands(connection, handler, logger);
    await connection.nats.flush();
    const ask = async (body: string, callId = 'call-1'): Promise<unknown> =>
      (
        await connection.nats.request(commandSubject(connection.prefix, callId), body, {
          timeout: 30_000,
        })
      ).json<unknown>();
    return { ask, server };
  }

  test('a hang-up reaches the handler, and its reply reaches the bot', async () => {
    const asked: string[] = [];
    const { ask, server } = await serving(async (callId, { command }) => {
      asked.push(`${command} ${callId}`);
      return { ok: true, state: 'ending' };
    });

    expect(await ask('{"command":"hangup"}')).toEqual({ ok: true, state: 'ending' });
    expect(asked).toEqual(['hangup call-1']);
    server.stop();
  });

  test('a misspelled member is refused, not ignored', async () => {
    const body = { command: 'transfer', to: 'sip:agents@pbx.example', timeoutMS: 9 };
    const { ask, server } = await serving(async () => ({ ok: true }));

    expect(await ask(JSON.stringify(body))).toEqual({
      ok: false,
      code: 'invalid',
      error: 'timeoutMS: is unknown; did you mean timeoutMs?',
      errors: [{ path: 'timeoutMS', message: 'is unknown; did you mean timeoutMs?' }],
    });
    server.stop();
  });

  test('an unknown member is named in the reply, and a hang-up is executed whatever members it has', async () => {
    const { ask, server } = await serving(async () => ({ ok: true, state: 'answered' }));
    const known = { command: 'stream', url: null };

    expect(await ask(JSON.stringify(known))).toEqual({ ok: true, state: 'answered' });
    expect(await ask(JSON.stringify({ ...known, note: 1, 'x-y': 2 }))).toEqual({
      ...{ ok: true, state: 'answered', ignored: ['note', 'x-y'] },
    });
    expect(await ask('{"command":"hangup","commandd":1,"why":2}')).toEqual({
      ...{ ok: true, state: 'answered', ignored: ['commandd', 'why'] },
    });
    server.stop();
  });

  test.each([
    [{ command: 'play', sound: 'sound:a', lopp: true }, 'lopp', 'loop'],
    [
      { command: 'transfer', to: 'sip:a@b', timeoutInMs: 2_000 },
      ...(['timeoutInMs', 'timeoutMs'] as const),
    ],
  ])('refuses %j and names the member that is meant', async (body, path, meant) => {
    const { ask, server } = await serving(async () => ({ ok: true }));

    expect(await ask(JSON.stringify(body))).toMatchObject({
      errors: [{ path, message: `is unknown; did you mean ${meant}?` }],
    });
    server.stop();
  });

  test('names each wrong member, as over HTTP', async () => {
    const body = { command: 'dtmf', digits: '12X', durationMs: 1 };
    const { ask, server } = await serving(async () => ({ ok: true }));

    expect(await ask(JSON.stringify(body))).toMatchObject({
      code: 'invalid',
      errors: [
        { path: 'digits', message: 'must be 1 to 64 of 0-9 A-D * # and w' },
        { path: 'durationMs', message: expect.any(String) },
      ],
    });
    server.stop();
  });

  test('the size of a refusal does not grow with the command', async () => {
    const parameters = Object.fromEntries(
      Array.from({ length: 90 }, (_, index) => [`${index}-${'x'.repeat(1_000)}`, 1]),
    );
    const body = { command: 'stream', url: 'wss://bot.example/', parameters };
    const { ask, server } = await serving(async () => ({ ok: true }));
    const reply = await ask(JSON.stringify(body));

    expect(reply).toMatchObject({ code: 'invalid', errors: expect.any(Array) });
    expect(JSON.stringify(reply).length).toBeLessThan(25_000);
    server.stop();
  });

  test.each([
    ...['', 'hangup', '{}', '[]', 'null', '{"command":"dial"}'],
    `{"command":"${'x'.repeat(5_000)}"}`,
    JSON.stringify({ command: 'hangup', note: 'x'.repeat(256 * 1_024) }),
  ])('refuses a body that is not a command: %#', async (body) => {
    const { ask, server } = await serving(async () => ({ ok: true }));

    expect(await ask(body)).toMatchObject({
      ...{ ok: false, code: 'invalid' },
      error: expect.stringMatching(/./),
    });
    server.stop();
  });

  test('does not reveal the error of a failing handler', async () => {
    const { ask, server } = await serving(() => Promise.reject(new Error('secret detail')));

    expect(await ask('{"command":"hangup"}')).toEqual({
      ...{ ok: false, code: 'internal' },
      error: 'internal error',
    });
    server.stop();
  });

  test('does not reply for a call of another node', async () => {
    const connection = await nats.connect();
    const mine =
      (callId: string): AnswerCommand =>
      async (asked) =>
        asked === callId ? { ok: true, by: callId } : undefined;
    const servers = ['call-a', 'call-b'].map((callId) =>
      serveCommands(connection, mine(callId), logger),
    );

    const reply = await connection.nats.request(
      commandSubject(connection.prefix, 'call-b'),
      '{"command":"hangup"}',
      { timeout: 30_000 },
    );

    expect(reply.json()).toEqual({ ok: true, by: 'call-b' });
    for (const server of servers) server.stop();
  });
});
