// A transfer that failed: the call goes on with its bot, or with one that may still come; nobody is left alone in it.

import { expect, test } from 'vitest';
import type { RequestedStream } from '../../src/calls/stream.ts';
import type { TransferRequest } from '../../src/calls/transfer.ts';
import { scriptCall } from '../support/scripted-call.ts';

const transfer: TransferRequest = {
  ...{ to: { kind: 'tel', number: '15550177' }, mode: 'bridge', timeoutMs: 20_000 },
  ...{ caller: '15550199', keepStream: false, onFailure: 'hangup' },
};
const bot = { url: 'wss://bot.example/audio', parameters: {} };

async function agentIsBusy(
  connect: RequestedStream['connect'] | 'none',
  hear: (call: ReturnType<typeof scriptCall>) => void,
) {
  const call = scriptCall({ request: connect === 'none' ? {} : { stream: { ...bot, connect } } });
  await call.sent();
  await call.answer();
  await call.settle();
  hear(call);
  await call.settle();
  call.actor.send({ type: 'command.transfer', commandId: 'agent', transfer });
  await call.settle();
  const failure = {
    at: call.now(),
    sipStatus: 486,
    reason: 'Busy Here',
    kind: 'response',
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
  ['a bot that has it', 'answered', noSpeech],
  ['a bot that came for the person', 'person', person],
  ['a bot that comes if there is a person', 'person', listening],
] as const)('the call goes on with %s', async (_name, connect, hear) => {
  const call = await agentIsBusy(connect, hear);

  expect(call.types()).toContain('transfer-failed');
  expect(call.endings()).toEqual([]);
});

test.each([
  ['without a bot', 'none', noSpeech],
  ['where the bot waits for a person who did not come', 'person', noSpeech],
] as const)('the call is over %s', async (_name, connect, hear) => {
  const call = await agentIsBusy(connect, hear);

  expect(call.types()).toContain('transfer-failed');
  expect(call.end().type).toBe('completed');
});
