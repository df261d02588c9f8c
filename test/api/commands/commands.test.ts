// Commands over HTTP: the id as header or member, and the answers made from the replies of a call's
// process.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Command, CommandReply } from '../../../src/calls/contract/command.ts';
import type { CallDetails } from '../../../src/interactions/call-queries.ts';
import { app, type Harness, startHarness, token } from '../support.ts';

const callId = 'call-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10';
const url = `/api/public/bot/st-1/calls/${callId}/commands`;

const one = app({});

describe('POST …/commands', () => {
  let harness: Harness;
  let taken: Command[];
  let reply: CommandReply | undefined;
  beforeEach(async () => {
    taken = [];
    reply = { ok: true, state: 'answered' };
    harness = await startHarness({
      commands: {
        run: async (_callId, command) => {
          taken.push(command);
          return reply;
        },
      },
    });
    harness.call = { callId, state: 'answered' } as unknown as CallDetails;
  });
  afterEach(() => harness[Symbol.asyncDispose]());

  const post = async (body: object, headers: Record<string, string> = {}) =>
    await harness.server.inject({
      method: 'POST',
      url,
      headers: { auth: await token(), ...headers },
      payload: body,
    });

  test('passes the command on with the key of the header as id, and answers 202', async () => {
    const response = await post(
      { command: 'play', sound: 'sound:offer' },
      { 'idempotency-key': 'offer-1' },
    );

    expect(response.statusCode).toBe(202);
    expect(response.json()).toEqual({ ok: true, commandId: 'offer-1', state: 'answered' });
    expect(taken).toEqual([{ command: 'play', sound: 'sound:offer', id: 'offer-1' }]);
  });

  test('lists unknown members, also of a hang-up, which is carried out', async () => {
    const ignored = async (body: object) =>
      (await post(body)).json<{ ignored?: unknown }>().ignored;

    expect(await ignored({ command: 'stop', note: 1, volume: 2 })).toEqual(['note', 'volume']);
    expect(await ignored({ command: 'hangup', commandd: 1, note: 1 })).toEqual([
      'commandd',
      'note',
    ]);
    expect(await ignored({ command: 'stop' })).toBeUndefined();
    expect(taken.map(({ command }) => command)).toEqual(['stop', 'hangup', 'stop']);
  });

  test('uses the member id like the header, and makes an id if there is none', async () => {
    await post({ command: 'stop', id: 'one' });
    await post({ command: 'stop', id: 'one' }, { 'idempotency-key': 'one' });
    const response = await post({ command: 'stop' });

    expect(taken.map(({ id }) => id)).toEqual(['one', 'one', expect.stringMatching(/^cmd-/)]);
    expect(response.json()).toMatchObject({ commandId: taken[2]?.id });
  });

  test.each<[string, object, Record<string, string>, string]>([
    ['two ids', { command: 'stop', id: 'one' }, { 'idempotency-key': 'two' }, 'Idempotency-Key'],
    ['a key with a space', { command: 'stop' }, { 'idempotency-key': 'a b' }, 'Idempotency-Key'],
    ['a sound that is none', { command: 'play', sound: 'offer' }, {}, 'sound'],
    ['a sound without a host', { command: 'play', sound: 'https:///a.wav' }, {}, 'sound'],
    ['a bot without a host', { command: 'stream', url: 'wss:///audio' }, {}, 'url'],
    ['a transfer to no address', { command: 'transfer', to: 'agents' }, {}, 'to'],
    [
      'a misspelled member',
      { command: 'transfer', to: 'sip:agents@pbx.example', timeoutMS: 9 },
      {},
      'timeoutMS',
    ],
    ['a near miss', { command: 'play', sound: 'sound:offer', lopp: true }, {}, 'lopp'],
    ['a unit too many', { command: 'transfer', to: 'sip:a@b', timeoutInMs: 9 }, {}, 'timeoutInMs'],
    ['a command that is none', { command: 'dial' }, {}, 'command'],
  ])('%s is a 400 that names it', async (_name, body, headers, path) => {
    const response = await post(body, headers);

    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ errors: [{ path }] });
    expect(taken).toEqual([]);
  });

  test.each<[CommandReply | undefined, number, string]>([
    [{ ok: false, code: 'state', error: 'The call is ringing.' }, 409, 'conflict'],
    [{ ok: false, code: 'sound', error: 'There is no sound offer' }, 409, 'conflict'],
    [{ ok: false, code: 'ended', error: 'The call has ended.' }, 409, 'conflict'],
    [{ ok: true, state: 'ended' }, 409, 'conflict'],
    [{ ok: false, code: 'forbidden', error: 'The app may not.' }, 403, 'forbidden'],
    [{ ok: false, code: 'invalid', error: 'trunk: there is none' }, 400, 'invalid-request'],
    [{ ok: false, code: 'id-used', error: 'Another came.' }, 409, 'idempotency-conflict'],
    [{ ok: false, code: 'internal', error: 'internal error' }, 503, 'unavailable'],
    [undefined, 503, 'unavailable'],
  ])('%j becomes a %i', async (answer, status, kind) => {
    reply = answer;
    const response = await post({ command: 'stop' });

    expect(response.statusCode).toBe(status);
    expect(response.json()).toMatchObject({ type: `urn:offhook:problem:${kind}` });
  });

  test('passes a transfer on with its defaults, and names members that it cannot have', async () => {
    const to = 'sip:agents@pbx.example';
    expect((await post({ command: 'transfer', to })).statusCode).toBe(202);
    expect(taken).toMatchObject([
      { to, mode: 'bridge', timeoutMs: 30_000, keepStream: false, onFailure: 'hangup' },
    ]);

    const errors = [{ path: 'trunk', message: 'there is no such trunk' }];
    reply = { ok: false, code: 'invalid', error: 'trunk: there is no such trunk', errors };
    const response = await post({ command: 'transfer', to, trunk: 'none' });
    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ errors });
  });

  test('limits a transfer to the numbers of the app that sends it, whichever app placed the call', async () => {
    await using limited = await startHarness({
      apps: {
        find: async () => ({ ...one, limits: { allowedPrefixes: ['49'] } }),
        findByApiKey: async () => undefined,
      },
      commands: { run: async () => reply },
    });
    limited.call = { callId, state: 'answered' } as unknown as CallDetails;
    const transferTo = async (to: string) =>
      await limited.server.inject({
        ...{ method: 'POST', url, headers: { auth: await token() } },
        payload: { command: 'transfer', to },
      });

    expect((await transferTo('tel:+4930123456')).statusCode).toBe(202);
    const response = await transferTo('tel:+15551234567');
    expect(response.statusCode).toBe(403);
    expect(response.json()).toMatchObject({ errors: [{ path: 'to' }] });
  });

  test('answers 409 for a call that has ended, and 404 for an unknown one', async () => {
    harness.call = { callId, state: 'ended' } as unknown as CallDetails;
    expect((await post({ command: 'hangup' })).statusCode).toBe(409);

    harness.call = undefined;
    expect((await post({ command: 'hangup' })).statusCode).toBe(404);
    expect(taken).toEqual([]);
  });
});
