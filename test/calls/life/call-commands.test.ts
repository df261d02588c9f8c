// Commands to a call of this process: done once however often they come, refused if the state of
// the call forbids them, and sounds in the order of their commands.

import { beforeEach, describe, expect, test } from 'vitest';
import type { CallNote } from '../../../src/calls/capture/capture.ts';
import { type Command, commandSchema } from '../../../src/calls/contract/command.ts';
import type { CallingApp } from '../../../src/calls/dialout-ports.ts';
import type { Keys } from '../../../src/calls/keys/keys.ts';
import { CallCommands } from '../../../src/calls/life/call-commands.ts';
import type { LiveCall } from '../../../src/calls/life/call-registry.ts';
import type { CallMachineEvent } from '../../../src/calls/life/call-setup.ts';
import type { SoundResult } from '../../../src/calls/ports.ts';
import type { RequestedStream } from '../../../src/calls/stream/stream.ts';
import type { StreamObstacles } from '../../../src/calls/stream/stream-effects.ts';
import type { TransferRequest } from '../../../src/calls/transfer/transfer.ts';
import { acceptedCall } from '../../support/scripted-call.ts';
import { testSound } from '../../support/test-sound.ts';

const call = acceptedCall();

let state: LiveCall['state'];
let acceptsKeys: boolean;
let sent: CallMachineEvent[];
let hangUps: number;
let obstacle: string | undefined;
let hidesKeys: boolean;
let isHere: boolean;
/** The app that placed the call. */
let app: CallingApp | undefined;
let planningFails: boolean;
let streamObstacles: StreamObstacles;
/** Sounds by their reference. A reference that is not in the map has no sound. */
let sounds: Map<string, Promise<SoundResult>>;
let commands: CallCommands;
let noted: CallNote[];

const stream: RequestedStream = {
  ...{ url: 'wss://bot.example/audio', sealedQuery: 'c2VhbGVk' },
  ...{ connect: 'answered', parameters: { a: 'b' } },
};

const transfer: TransferRequest = {
  to: { kind: 'sip', user: 'agents', host: 'pbx.example' },
  caller: call.request.caller,
  mode: 'bridge',
  timeoutMs: 30_000,
  keepStream: false,
  onFailure: 'hangup',
};

function sound(name: string): SoundResult {
  return { ok: true, sound: testSound(name, new Uint8Array(80)) };
}

function slowly(): { readonly result: Promise<SoundResult>; arrive(result: SoundResult): void } {
  let arrive: (result: SoundResult) => void = () => undefined;
  const result = new Promise<SoundResult>((resolve) => {
    arrive = resolve;
  });
  return { result, arrive };
}

beforeEach(() => {
  state = 'answered';
  acceptsKeys = true;
  sent = [];
  noted = [];
  hangUps = 0;
  obstacle = undefined;
  hidesKeys = false;
  isHere = true;
  app = {};
  planningFails = false;
  streamObstacles = { toBegin: undefined, toEnd: undefined };
  sounds = new Map([
    ['sound:a', Promise.resolve(sound('sound:a'))],
    ['sound:b', Promise.resolve(sound('sound:b'))],
  ]);
  let last = 0;
  commands = new CallCommands({
    registry: {
      live: (callId) =>
        callId === call.callId && isHere
          ? {
              ...{ call, state, acceptsKeys, transferObstacle: obstacle, streamObstacles },
              ...{ hidesKeys, recordObstacle: () => obstacle },
              send: (event) => void sent.push(event),
            }
          : undefined,
      end: () => {
        hangUps += 1;
        return true;
      },
    },
    sounds: {
      loadSound: async (_accountId, reference) =>
        await (sounds.get(reference) ?? { ok: false, reason: `There is no ${reference}` }),
    },
    isSoundReachable: (reference) => reference !== 'https://10.0.0.1/a.wav',
    routes: {
      plan: () => {
        if (planningFails) throw new Error('a defect');
        return { ok: true };
      },
      passes: () => false,
    },
    apps: { find: async () => app },
    streams: {
      isReachable: () => true,
      seal: (_botId, url) => ({ url: url.replace(/\?.*/, ''), sealedQuery: 'c2VhbGVk' }),
    },
    clock: { now: () => new Date(0) },
    note: (_callId, note) => void noted.push(note),
    newCommandId: () => {
      last += 1;
      return `cmd-${last}`;
    },
  });
});

const run = (command: Command) => commands.run(call.callId, command);
const played = () =>
  sent.flatMap((event) =>
    event.type === 'command.media' && event.command.kind === 'play'
      ? [event.command.playback.sound.name]
      : [],
  );
const unplayed = () =>
  sent.flatMap((event) =>
    event.type === 'media.playback' && event.report.kind === 'finished'
      ? [[event.report.sound, event.report.reason]]
      : [],
  );
const pressed = (keys: Keys) => ({ type: 'command.media', command: { kind: 'press', keys } });
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('a command', () => {
  test('has a sound of the account played, in a loop if it says so', async () => {
    expect(await run({ command: 'play', sound: 'sound:a', loop: true, id: 'one' })).toEqual({
      ok: true,
      commandId: 'one',
      state: 'answered',
    });
    await settled();

    expect(sent).toMatchObject([
      {
        type: 'command.media',
        command: {
          kind: 'play',
          playback: {
            ...{ playbackId: 'one', source: 'command', sound: { name: 'sound:a' }, loop: true },
          },
        },
      },
    ]);
  });

  test('is noted once: what it was, who sent it, and its result', async () => {
    const asked = { command: 'dtmf', digits: '1', id: 'k' } as const;
    await commands.run(call.callId, asked, 'app-1');
    await commands.run(call.callId, asked, 'app-1');
    acceptsKeys = false;
    await run({ command: 'dtmf', digits: '2' });

    expect(noted).toMatchObject([
      { kind: 'command', what: 'dtmf 1', by: 'app-1', commandId: 'k' },
      { what: 'dtmf 2', by: 'unknown', refusal: expect.stringMatching('does not accept keys') },
    ]);
    expect(noted[0]).not.toHaveProperty('refusal');
  });

  test('is noted without digits while they are hidden', async () => {
    hidesKeys = true;
    await run({ command: 'dtmf', digits: '4w1' });
    expect(noted).toMatchObject([{ what: 'dtmf *w*' }]);
  });

  test('records, unless the recording has a reason against it', async () => {
    const asked = { command: 'record', action: 'pause', id: 'card' } as const;
    expect(await run(asked)).toEqual({ ok: true, commandId: 'card', state: 'answered' });
    expect(sent).toEqual([{ type: 'command.record', action: 'pause', commandId: 'card' }]);
    obstacle = 'The recording is already paused.';
    expect(await run({ ...asked, id: 'again' })).toEqual({
      ...{ ok: false, code: 'state', error: obstacle },
    });
  });

  test.each([
    [
      { command: 'play', sound: 'https://a.example/x.wav?key=s3cret' },
      'play https://a.example/x.wav',
    ],
    [{ command: 'play', sound: 'sound:hi', loop: true }, 'play sound:hi, looped'],
    [{ command: 'dtmf', digits: '12#' }, 'dtmf 12#'],
    [
      { command: 'transfer', to: 'sip:agents@pbx.example', headers: { 'X-Key': 's3cret' } },
      'transfer to sip:agents@pbx.example (bridge)',
    ],
    [{ command: 'stream', url: 'wss://bot.example/a?key=s3cret' }, 'stream to wss://bot.example/a'],
    [{ command: 'stream', url: null }, 'end the stream'],
    [{ command: 'record', action: 'pause' }, 'record pause'],
    [{ command: 'hangup' }, 'hangup'],
  ])('%j is noted without parts that may be secret', async (command, text) => {
    await run(commandSchema.parse(command));
    expect(noted).toMatchObject([{ what: text }]);
  });

  test('gets an id if it has none', async () => {
    expect(await run({ command: 'stop' })).toMatchObject({ commandId: 'cmd-1' });
    expect(await run({ command: 'stop' })).toMatchObject({ commandId: 'cmd-2' });
  });

  test('to a call that is not here is left to another node', () => {
    expect(commands.run('call-2' as typeof call.callId, { command: 'stop' })).toBeUndefined();
  });

  test('that hangs up is answered as in older versions, with its id if it has one', async () => {
    state = 'ringing';

    expect(await run({ command: 'hangup' })).toEqual({ ok: true, state: 'ending' });
    expect(await run({ command: 'hangup', id: 'bye' })).toEqual({
      ok: true,
      state: 'ending',
      commandId: 'bye',
    });
    expect(hangUps).toBe(2);
  });

  test.each(['preparing', 'dialing', 'ringing', 'answering', 'ending'] as const)(
    'that needs an answered call is refused by a call that is %s',
    async (now) => {
      state = now;

      for (const command of [
        { command: 'play', sound: 'sound:a' },
        { command: 'stop' },
        { command: 'dtmf', digits: '1' },
      ] as const) {
        const error = `The call is ${now}; ${command.command} needs an answered call.`;
        expect(await run(command)).toEqual({ ok: false, code: 'state', error });
      }
      expect(sent).toEqual([]);
    },
  );

  test('for a sound that does not exist is refused, and no event follows', async () => {
    expect(await run({ command: 'play', sound: 'sound:none' })).toEqual({
      ok: false,
      code: 'sound',
      error: 'There is no sound:none',
    });
    await settled();
    expect(sent).toEqual([]);
  });

  test('for a sound at a forbidden address is refused, and names the member', async () => {
    const message = 'must be a public address over https, or one in NOTIFY_ALLOWED_NETWORKS';
    expect(await run({ command: 'play', sound: 'https://10.0.0.1/a.wav' })).toEqual({
      ok: false,
      code: 'invalid',
      error: `sound: ${message}`,
      errors: [{ path: 'sound', message }],
    });
    await settled();
    expect(sent).toEqual([]);
  });
});

describe('keys', () => {
  test('are pressed for 100 ms each, unless the command says for how long', async () => {
    expect(await run({ command: 'dtmf', digits: '1w#', id: 'one' })).toEqual({
      ok: true,
      commandId: 'one',
      state: 'answered',
    });
    await run({ command: 'dtmf', digits: 'A', durationMs: 250, id: 'two' });

    expect(sent).toEqual([
      pressed({ commandId: 'one', digits: '1w#', durationMs: 100 }),
      pressed({ commandId: 'two', digits: 'A', durationMs: 250 }),
    ]);
  });

  test('are refused if the far end takes none, and are not repeated in the reason', async () => {
    acceptsKeys = false;

    expect(await run({ command: 'dtmf', digits: '4711' })).toEqual({
      ok: false,
      code: 'digits',
      error: 'The far end does not accept keys: its SDP does not list telephone-event (RFC 4733).',
    });
    expect(sent).toEqual([]);
  });
});

describe('a command with an id', () => {
  const play = { command: 'play', sound: 'sound:a', id: 'one' } as const;

  test('is done once, and answered as before, even while it is being done', async () => {
    const replies = await Promise.all([
      run(play),
      run(play),
      run({ id: 'one', sound: 'sound:a', command: 'play' }),
    ]);
    replies.push(await run(play));
    await settled();

    expect(new Set(replies.map((reply) => JSON.stringify(reply))).size).toBe(1);
    expect(played()).toEqual(['sound:a']);
  });

  test.each<[string, Command]>([
    ['another sound', { ...play, sound: 'sound:b' }],
    ['another command', { command: 'hangup', id: 'one' }],
  ])('is refused for %s under the same id', async (_name, other) => {
    await run(play);

    expect(await run(other)).toMatchObject({ ok: false, code: 'id-used' });
    await settled();
    expect(played()).toEqual(['sound:a']);
    expect(hangUps).toBe(0);
  });

  test('may be repeated after it was refused', async () => {
    state = 'ringing';
    expect(await run(play)).toMatchObject({ ok: false });
    state = 'answered';

    expect(await run(play)).toMatchObject({ ok: true });
  });

  test('may be repeated after a failure, which affects only its answer', async () => {
    const asked = { command: 'transfer', to: 'tel:+12025550177', id: 'k' };
    const command = commandSchema.parse(asked);
    planningFails = true;
    const answers = await Promise.allSettled([run(command), run(command)]);
    await settled();
    planningFails = false;

    expect(answers.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(await run(command)).toMatchObject({ ok: true, commandId: 'k' });
  });

  test('is remembered among the last 1,000 of its call', async () => {
    for (let index = 0; index < 1_001; index += 1) await run({ command: 'stop', id: `s-${index}` });
    const before = sent.length;
    await run({ command: 'stop', id: 's-1' });
    expect(sent).toHaveLength(before);

    await run({ command: 'stop', id: 's-0' });
    expect(sent).toHaveLength(before + 1);
  });

  test('is done again for a later call with the same id', async () => {
    await run(play);
    commands.forget(call.callId);
    await run(play);
    await settled();

    expect(played()).toEqual(['sound:a', 'sound:a']);
  });
});

describe('a transfer', () => {
  const command = commandSchema.parse({
    ...{ command: 'transfer', id: 'agents', to: 'sip:agents@pbx.example' },
  });
  const begun = () => sent.filter(({ type }) => type === 'command.transfer');

  test('begins as it was checked, once for each id', async () => {
    const replies = await Promise.all([run(command), run(command)]);

    const taken = { ok: true, commandId: 'agents', state: 'answered' };
    expect(replies).toEqual([taken, taken]);
    expect(sent).toEqual([{ type: 'command.transfer', commandId: 'agents', transfer }]);
  });

  test('is refused as it was checked, and may be repeated', async () => {
    app = undefined;
    expect(await run(command)).toEqual({
      ...{ ok: false, code: 'forbidden', error: 'The app may not dial this number.' },
    });
    expect(begun()).toEqual([]);

    app = {};
    expect(await run(command)).toMatchObject({ ok: true });
  });

  test('is refused by a call that is not answered or is being transferred', async () => {
    state = 'ringing';
    expect(await run(command)).toMatchObject({
      error: 'The call is ringing; transfer needs an answered call.',
    });
    state = 'answered';
    obstacle = 'The call is already being transferred.';
    expect(await run(command)).toEqual({ ok: false, code: 'state', error: obstacle });
    expect(begun()).toEqual([]);
  });

  test('does not begin in a call that ended during the check', async () => {
    const first = run(command);
    state = 'ending';
    expect(await first).toMatchObject({ code: 'state', error: 'The call is ending.' });

    state = 'answered';
    const second = run(command);
    isHere = false;
    expect(await second).toMatchObject({ ok: false, code: 'ended' });
    expect(begun()).toEqual([]);
  });
});

describe('a stream', () => {
  const url = 'wss://bot.example/audio?token=s3cret';
  const command = { command: 'stream', id: 'bot', url, parameters: { a: 'b' } } as const;
  const taken = { ok: true, commandId: 'bot', state: 'answered' };

  test('begins as it was checked, without the secret of its URL, once for each id', async () => {
    expect(await Promise.all([run(command), run(command)])).toEqual([taken, taken]);

    expect(sent).toEqual([{ type: 'command.stream', commandId: 'bot', stream }]);
    expect(await run({ ...command, url: `${url}2` })).toMatchObject({ code: 'id-used' });
  });

  test('is ended by null, which needs no check', async () => {
    app = undefined;
    expect(await run({ command: 'stream', url: null, id: 'bot' })).toEqual(taken);

    expect(sent).toEqual([{ type: 'command.stream', commandId: 'bot' }]);
  });

  test('is refused as it was checked, and may be repeated', async () => {
    app = undefined;
    expect(await run(command)).toMatchObject({ ok: false, code: 'invalid' });

    app = {};
    expect(await run(command)).toEqual(taken);
  });

  test('is refused with the obstacle as the reason', async () => {
    streamObstacles = { toBegin: 'The call is leaving a message.', toEnd: 'It has none.' };
    const refused = { ok: false, code: 'state' };

    expect(await run(command)).toEqual({ ...refused, error: 'The call is leaving a message.' });
    expect(await run({ ...command, url: null })).toEqual({ ...refused, error: 'It has none.' });
    expect(sent).toEqual([]);
  });

  test('does not begin in a call that ended during the check', async () => {
    const first = run(command);
    state = 'ending';
    expect(await first).toMatchObject({ code: 'state', error: 'The call is ending.' });

    state = 'answered';
    const second = run(command);
    isHere = false;
    expect(await second).toMatchObject({ ok: false, code: 'ended' });
    expect(sent).toEqual([]);
  });
});

describe('sounds that load slowly', () => {
  test('are played in the order of their commands, which are answered after one second', async () => {
    const slow = slowly();
    sounds.set('https://x.example/a.wav?token=1', slow.result);
    const first = run({ command: 'play', sound: 'https://x.example/a.wav?token=1' });
    await run({ command: 'play', sound: 'sound:b' });
    await settled();
    expect(played()).toEqual([]);

    expect(await first).toMatchObject({ ok: true });
    slow.arrive(sound('https://x.example/a.wav'));
    await settled();
    expect(played()).toEqual(['https://x.example/a.wav', 'sound:b']);
  });

  test('are reported as failed if they cannot be loaded, without the query of their URL', async () => {
    const slow = slowly();
    sounds.set('https://x.example/a.wav?token=1', slow.result);
    expect(await run({ command: 'play', sound: 'https://x.example/a.wav?token=1' })).toMatchObject({
      ok: true,
    });
    slow.arrive({ ok: false, reason: 'It answered 404' });
    await settled();

    expect(played()).toEqual([]);
    expect(unplayed()).toEqual([['https://x.example/a.wav', 'failed']]);
  });

  test('are not played after a stop', async () => {
    const slow = slowly();
    sounds.set('https://x.example/a.wav', slow.result);
    const first = run({ command: 'play', sound: 'https://x.example/a.wav' });
    await run({ command: 'stop' });
    slow.arrive(sound('https://x.example/a.wav'));
    await first;
    await run({ command: 'play', sound: 'sound:b' });
    await settled();

    expect(played()).toEqual(['sound:b']);
    expect(unplayed()).toEqual([['https://x.example/a.wav', 'stopped']]);
  });
});

describe('the schema', () => {
  test.each<[string, unknown]>([
    ['no command', {}],
    ['an unknown command', { command: 'dial' }],
    ['play without a sound', { command: 'play' }],
    ['a sound without a name', { command: 'play', sound: 'sound:' }],
    ['a file', { command: 'play', sound: 'file:///etc/passwd' }],
    ['a URL with a password', { command: 'play', sound: 'https://me:secret@x.example/a.wav' }],
    ['no digits', { command: 'dtmf', digits: '' }],
    ['a key that no phone has', { command: 'dtmf', digits: '12e' }],
    ['65 digits', { command: 'dtmf', digits: '1'.repeat(65) }],
    ['a key of 39 ms', { command: 'dtmf', digits: '1', durationMs: 39 }],
    ['a key of more than 5 s', { command: 'dtmf', digits: '1', durationMs: 5_001 }],
    ['a transfer without a target', { command: 'transfer' }],
    ['a transfer to a page', { command: 'transfer', to: 'https://x.example' }],
    ['a transfer in no time', { command: 'transfer', to: 'tel:+4930123456', timeoutMs: 0 }],
    ['a stream to nowhere', { command: 'stream' }],
    ['a stream to a page', { command: 'stream', url: 'https://bot.example/audio' }],
    ['a stream with a password', { command: 'stream', url: 'wss://me:secret@bot.example/' }],
    [
      'a parameter that is not a string',
      { command: 'stream', url: 'wss://b.example', parameters: { a: 1 } },
    ],
    ['an id with a space', { command: 'stop', id: 'a b' }],
    ['an empty id', { command: 'stop', id: '' }],
  ])('refuses %s', (_name, command) => {
    expect(commandSchema.safeParse(command).success).toBe(false);
  });

  test('accepts the hang-up of older versions', () => {
    expect(commandSchema.parse({ command: 'hangup' })).toEqual({ command: 'hangup' });
  });
});
