// A person who asks not to be called any more, by a key or through the application's command: what
// the call states, and how it ends.

import { describe, expect, test } from 'vitest';
import type { DialoutRequest } from '../../../src/calls/call-types.ts';
import { optOutHandler } from '../../../src/calls/opt-out/opt-out-command.ts';
import { optOutErrors } from '../../../src/calls/opt-out/opt-out-members.ts';
import { sourceOf } from '../../../src/calls/opt-out/opt-outs.ts';
import type { PlaybackReport } from '../../../src/calls/playback/playback.ts';
import type { TransferRequest } from '../../../src/calls/transfer/transfer.ts';
import { liveCall } from '../../support/live-call.ts';
import {
  acceptedCall,
  type ScriptOptions,
  scriptCall,
  storedLeg,
} from '../../support/scripted-call.ts';

const { callId } = acceptedCall();
const bot = { url: 'wss://bot.example/audio', connect: 'answered', parameters: {} } as const;

async function answeredCall(request: Partial<DialoutRequest> = {}, options: ScriptOptions = {}) {
  const call = scriptCall({
    ...options,
    request: { machineDetection: 'disabled', optOutKey: '9', ...request },
  });
  await call.sent();
  await call.answer();
  return Object.assign(call, {
    press: (digit: string) => call.media().observe({ kind: 'dtmf', digit, durationMs: 120 }),
    command: (commandId = 'stop-calling') => call.actor.send({ type: 'command.optOut', commandId }),
    optOuts: () => call.stored.filter(({ type }) => type === 'opted-out').map(({ data }) => data),
    /** An agent of a transfer answers. */
    connectAgent: async () => {
      const transfer: TransferRequest = {
        to: { kind: 'tel', number: '15550111' },
        ...{ caller: '15550199', timeoutMs: 20_000 },
        ...{ mode: 'bridge', keepStream: false, onFailure: 'stay' },
      };
      call.actor.send({ type: 'command.transfer', commandId: 'agent', transfer });
      await call.settle();
      const leg = { ...storedLeg, dialogId: 'dialog-2' };
      call.secondLeg().observe({ kind: 'answered', sdp: 'sdp', leg, at: call.now() });
      await call.settle();
    },
  });
}

const byKey = { by: 'key', source: `key 9 of ${callId}` };

describe('the key', () => {
  test('states the opt-out, and ends the call', async () => {
    const call = await answeredCall();
    call.press('9');
    await call.settle();

    expect(call.types().slice(-3)).toEqual(['dtmf', 'opted-out', 'completed']);
    expect(call.optOuts()).toEqual([byKey]);
    expect(call.log).toContain('bye');
    expect(call.end().data).toMatchObject({
      ...{ outcome: 'completed', reasonCode: 'Bot-disconnected', optedOut: true },
    });
    expect(call.endings()[0]?.evidence?.optedOut).toEqual({
      ...{ by: 'key', at: call.now().toISOString() },
    });
  });

  test('may arrive by SIP INFO', async () => {
    const call = await answeredCall();
    call.leg().observe({ kind: 'dtmf', digit: '9', durationMs: 100 });
    await call.settle();

    expect(call.optOuts()).toEqual([byKey]);
  });

  test('works after more keys than a call states', async () => {
    const call = await answeredCall({}, { limits: { maxDigits: 1 } });
    for (const digit of '129') call.press(digit);
    await call.settle();

    expect(call.types().slice(-3)).toEqual(['dtmf', 'opted-out', 'completed']);
  });

  test('is no other key, and no key unless the request names one', async () => {
    const other = await answeredCall();
    other.press('8');
    const none = scriptCall({ request: { machineDetection: 'disabled' } });
    await none.sent();
    await none.answer();
    none.media().observe({ kind: 'dtmf', digit: '9', durationMs: 120 });

    expect(other.types()).not.toContain('opted-out');
    expect(none.types()).not.toContain('opted-out');
    expect([other.state(), none.state()]).toEqual(['answered', 'answered']);
  });

  test('means nothing while an agent is connected', async () => {
    const call = await answeredCall();
    await call.connectAgent();
    call.press('9');

    expect(call.types()).toContain('transfer-answered');
    expect(call.optOuts()).toEqual([]);
    expect(call.state()).toBe('answered');
  });
});

describe('a call with a sound for people who opt out', () => {
  const request = { optOutSound: 'sound:goodbye', stream: bot };
  const finished: PlaybackReport = {
    ...{ kind: 'finished', playbackId: 'optOutSound', source: 'announcement' },
    ...{ sound: 'sound:goodbye', reason: 'done', playedMs: 2_000 },
  };

  test('plays it in place of the bot, and then ends', async () => {
    const call = await answeredCall(request);
    call.press('9');
    await call.settle();

    expect(call.log.slice(-3)).toEqual([
      ...['store opted-out', 'stopStream announcement', 'play optOutSound'],
    ]);
    expect(call.state()).toBe('answered');

    call.advance(2_000);
    call.media().observe({ kind: 'playback', report: finished });
    await call.settle();

    expect(call.log).toContain('bye');
    expect(call.end().data).toMatchObject({ outcome: 'completed', optedOut: true });
  });

  test('states one opt-out, however often the person asks', async () => {
    const call = await answeredCall(request);
    call.press('9');
    call.press('9');
    call.command();

    expect(call.optOuts()).toEqual([byKey]);
    expect(call.log.filter((line) => line === 'play optOutSound')).toHaveLength(1);
  });

  test('begins neither a stream nor a transfer meanwhile', async () => {
    const call = await answeredCall(request);
    call.press('9');
    call.actor.send({ type: 'command.stream', commandId: 'other-bot', stream: bot });
    await call.settle();

    expect(call.log.filter((line) => line.startsWith('answerStream'))).toEqual(['answerStream']);
  });

  test('is not dialled if the sound cannot be loaded', async () => {
    const call = scriptCall({
      request,
      loadSound: async () => ({ ok: false, reason: 'There is no sound goodbye' }),
    });
    await call.settle();

    expect(call.end().data).toMatchObject({ reason: 'optOutSound: There is no sound goodbye' });
  });
});

describe('the command', () => {
  const byCommand = { by: 'command', source: `command of ${callId}`, commandId: 'stop-calling' };

  test('states the opt-out, and ends the call', async () => {
    const call = await answeredCall();
    call.command();
    await call.settle();

    expect(call.optOuts()).toEqual([byCommand]);
    expect(call.end().data).toMatchObject({ optedOut: true });
  });

  test('leaves the person with an agent who is connected', async () => {
    const call = await answeredCall({ optOutSound: 'sound:goodbye' });
    await call.connectAgent();
    call.command();

    expect(call.optOuts()).toEqual([byCommand]);
    expect(call.state()).toBe('answered');
    expect(call.log).not.toContain('play optOutSound');

    call.remoteBye();
    await call.settle();
    expect(call.end().data).toMatchObject({ optedOut: true });
  });

  test('is refused if no suppression can name the target', async () => {
    const call = acceptedCall({ target: localTarget });
    const live = liveCall(call, neverSent);
    const context = { live, commandId: 'stop-calling', ports: {} };

    expect(await optOutHandler.execute({ command: 'optOut' }, context)).toEqual({
      ...{ ok: false, code: 'state' },
      error: 'The target cannot be suppressed: its number is only valid within a phone-context.',
    });
  });
});

const localTarget = { kind: 'local', digits: '7042', phoneContext: 'pbx.example' } as const;
const neverSent = (): never => {
  throw new Error('a refused command reached the call');
};

describe('a person who opts out by the key', () => {
  const ruling = {
    ...{ ruleSet: 'default', version: 1 },
    abandonment: { formula: 'ftc', connected: 'agent' },
  } as const;
  const hello = { elapsedMs: 1_640, speechMs: 600, pauseMs: 700, spanMs: 600 };

  async function greetedCall(request: Partial<DialoutRequest> = {}) {
    const wanted = { machineDetection: 'detect', campaign: 'spring', ...request } as const;
    const call = await answeredCall(wanted, { ruling });
    call.advance(1_640);
    call.amd('amd_human_detected', hello);
    const outcome = () => call.steps.findLast(({ person }) => person !== undefined)?.person?.ftc;
    return Object.assign(call, { outcome });
  }

  test('has left, if that is within the two seconds, and even if a sound outlasts them', async () => {
    const call = await greetedCall({ optOutSound: 'sound:goodbye' });
    call.press('9');
    call.advance(10_000);

    expect(call.outcome()).toBe('left');
    expect(call.types()).not.toContain('abandoned');
  });

  test('was abandoned before, if that is later', async () => {
    const call = await greetedCall();
    call.advance(2_000);
    call.press('9');
    await call.settle();

    expect(call.outcome()).toBe('abandoned');
  });
});

test('a request for a number that cannot be suppressed may not name a key', () => {
  const message = 'needs a target that is valid without a phone-context';

  expect(optOutErrors({ optOutKey: '9', target: localTarget })).toEqual([
    { path: 'optOutKey', message },
  ]);
  expect(optOutErrors({ target: localTarget })).toEqual([]);
  expect(optOutErrors({ optOutKey: '9', target: { kind: 'tel', number: '1' } })).toEqual([]);
});

test('a source names the call within the length of a source', () => {
  expect(sourceOf(callId, '#')).toBe(`key # of ${callId}`);
  expect(sourceOf(callId, '#').length).toBeLessThanOrEqual(64);
});
