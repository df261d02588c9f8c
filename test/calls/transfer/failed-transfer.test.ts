// A failed transfer: the call goes on with its bot, or with one that may still come. No person is
// left alone in the call.

import { describe, expect, test } from 'vitest';
import type { DialoutRequest } from '../../../src/calls/call-types.ts';
import type { RequestedVoicemail } from '../../../src/calls/plans/plans.ts';
import type { RequestedStream } from '../../../src/calls/stream/stream.ts';
import type { TransferRequest } from '../../../src/calls/transfer/transfer.ts';
import { scriptCall } from '../../support/scripted-call.ts';

const transfer: TransferRequest = {
  ...{ to: { kind: 'tel', number: '15550177' }, mode: 'bridge', timeoutMs: 20_000 },
  ...{ caller: '15550199', keepStream: false, onFailure: 'hangup' },
};
const voicemail: RequestedVoicemail = {
  ...{ play: 'sound:offer', ifNoBeep: 'play', waitForBeepMs: 4_000, maxMs: 60_000 },
};
type Plans = Pick<DialoutRequest, 'voicemail' | 'screening'>;
const bot = { url: 'wss://bot.example/audio', parameters: {} };

async function agentIsBusy(
  connect: RequestedStream['connect'] | 'none',
  hear: (call: ReturnType<typeof scriptCall>) => void,
  { plans = {}, ...how }: Partial<TransferRequest> & { readonly plans?: Plans } = {},
) {
  const stream = connect === 'none' ? {} : { stream: { ...bot, connect } };
  const call = scriptCall({ request: { ...plans, ...stream } });
  await call.sent();
  await call.answer();
  await call.settle();
  hear(call);
  await call.settle();
  call.actor.send({
    type: 'command.transfer',
    commandId: 'agent',
    transfer: { ...transfer, ...how },
  });
  await call.settle();
  const failure = {
    at: call.now(),
    sipStatus: 486,
    reason: 'Busy Here',
    kind: 'response',
    facts: { cause: { q850: 17 } },
  } as const;
  call.secondLeg().observe({ kind: 'failed', failure });
  await call.settle();
  return call;
}

const listening = (): void => undefined;
const person = (call: ReturnType<typeof scriptCall>): void => {
  call.amd('amd_human_detected');
};
const noSpeech = (call: ReturnType<typeof scriptCall>): void => {
  call.amd('amd_no_speech_detected');
  call.amd('amd_stopped', { reason: 'no-speech' });
};

test.each([
  ['a bot that has a stream', 'answered', noSpeech],
  ['a bot that came for the person', 'person', person],
  ['a bot that will come if there is a person', 'person', listening],
] as const)('the call goes on with %s', async (_name, connect, hear) => {
  const call = await agentIsBusy(connect, hear);

  expect(call.types()).toContain('transfer-failed');
  expect(call.endings()).toEqual([]);
});

test.each([
  ['without a bot', 'none', noSpeech],
  ['if the bot waits for a person and detection ended without one', 'person', noSpeech],
] as const)('the call is over %s', async (_name, connect, hear) => {
  const call = await agentIsBusy(connect, hear);

  expect(call.types()).toContain('transfer-failed');
  expect(call.end()).toMatchObject({
    type: 'completed',
    data: { transfer: { outcome: 'busy', cause: { q850: 17 } } },
  });
});

describe('a call whose bot waits for a person', () => {
  const screening = { play: 'sound:who-is-calling' };
  const screened = (call: ReturnType<typeof scriptCall>): void => {
    call.amd('amd_machine_detected', { reason: 'call-screening' });
    call.media().observe({ kind: 'plan', report: { kind: 'held', by: 'screening' } });
  };
  const listenAnew = (call: ReturnType<typeof scriptCall>): void => {
    call.amd('amd_machine_stopped_speaking');
    call.amd('amd_stopped', { reason: 'screened' });
    call.media().observe({ kind: 'plan', report: { kind: 'armed', round: 2 } });
    call.media().observe({ kind: 'plan', report: { kind: 'held', by: undefined } });
  };

  test('ends when detection ends without a person, as if detection had ended before the agent was busy', async () => {
    const call = await agentIsBusy('person', listening);
    expect(call.endings()).toEqual([]);
    noSpeech(call);
    await call.settle();

    expect(call.types().slice(-4)).toEqual(['transfer-failed', 'amd', 'amd', 'completed']);
    expect(call.log).toContain('bye');
    expect(call.end()).toMatchObject({
      type: 'completed',
      data: { outcome: 'completed', reasonCode: 'Bot-disconnected' },
    });
  });

  test('goes on when detection ends with a person', async () => {
    const call = await agentIsBusy('person', listening);
    person(call);
    call.amd('amd_stopped', { reason: 'human' });
    await call.settle();

    expect(call.endings()).toEqual([]);
  });

  test('goes on without a person with `onFailure: stay`', async () => {
    const call = await agentIsBusy('person', listening, { onFailure: 'stay' });
    noSpeech(call);
    await call.settle();

    expect(call.endings()).toEqual([]);
  });

  test('goes on while another agent is called, or if a command has ended the stream', async () => {
    const called = await agentIsBusy('person', listening);
    called.actor.send({ type: 'command.transfer', commandId: 'another', transfer });
    const withoutBot = await agentIsBusy('person', listening);
    withoutBot.actor.send({ type: 'command.stream', commandId: 'none' });
    for (const call of [called, withoutBot]) {
      noSpeech(call);
      await call.settle();
      expect(call.endings()).toEqual([]);
    }
  });

  test('waits for the person who comes after a call screening', async () => {
    const call = await agentIsBusy('person', screened, { plans: { screening } });
    listenAnew(call);
    await call.settle();
    expect(call.endings()).toEqual([]);
    noSpeech(call);
    await call.settle();
    // Whether a plan takes the call after that is not known yet.
    expect(call.endings()).toEqual([]);
    call.media().observe({ kind: 'plan', report: { kind: 'done' } });
    await call.settle();

    expect(call.end().type).toBe('completed');
  });

  test('leaves its message first if detection ended with a machine', async () => {
    const call = await agentIsBusy('person', listening, { plans: { voicemail } });
    call.amd('amd_machine_detected', { reason: 'machine-after-screening' });
    call.amd('amd_stopped', { reason: 'machine-after-screening' });
    await call.settle();
    call.media().observe({ kind: 'plan', report: { kind: 'held', by: 'voicemail' } });
    await call.settle();
    expect(call.endings()).toEqual([]);
    call.media().observe({ kind: 'plan', report: { kind: 'over', outcome: 'voicemail-left' } });
    call.media().observe({ kind: 'plan', report: { kind: 'done' } });
    await call.settle();

    expect(call.end().data).toMatchObject({ outcome: 'voicemail-left' });
  });
});

test('a busy agent does not cut short a message that is being left', async () => {
  const call = await agentIsBusy(
    'none',
    (heard) => {
      heard.amd('amd_machine_detected');
      heard.media().observe({ kind: 'plan', report: { kind: 'held', by: 'voicemail' } });
    },
    { plans: { voicemail } },
  );

  expect(call.types()).toContain('transfer-failed');
  expect(call.endings()).toEqual([]);
});
