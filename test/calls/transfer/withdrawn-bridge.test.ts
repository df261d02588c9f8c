// A beep corrects the verdict that a person is there, while an agent is being called.

import { describe, expect, test } from 'vitest';
import type { RequestedVoicemail } from '../../../src/calls/plans/plans.ts';
import type { TransferPlan } from '../../../src/calls/transfer/transfer.ts';
import { type ScriptOptions, scriptCall, storedLeg } from '../../support/scripted-call.ts';

const bridge: TransferPlan = {
  ...{ to: { kind: 'tel', number: '15550177' }, mode: 'bridge', timeoutMs: 20_000 },
  ...{ caller: '15550199', keepStream: false, onFailure: 'hangup', on: 'person' },
};
const voicemail: RequestedVoicemail = {
  ...{ play: 'sound:offer', ifNoBeep: 'play', waitForBeepMs: 4_000, maxMs: 60_000 },
};

/** A call in which the agent's phone is being called. */
async function calling(request: ScriptOptions['request'] = {}) {
  const call = scriptCall({ request: { bridge, ...request } });
  await call.sent();
  await call.answer();
  await call.settle();
  call.amd('amd_human_detected');
  await call.settle();
  const beeps = async () => {
    call.amd('amd_tone_detected', { corrects: 'amd_human_detected' });
    call.amd('amd_stopped', { reason: 'tone' });
    await call.settle();
  };
  const agentAnswers = async () => {
    const leg = { ...storedLeg, dialogId: 'dialog-2' };
    call.secondLeg().observe({ kind: 'answered', sdp: 'sdp', leg, at: call.now() });
    await call.settle();
  };
  return { call, beeps, agentAnswers };
}

const failed = {
  type: 'transfer-failed',
  data: { outcome: 'machine', reason: 'A machine after all', mode: 'bridge' },
};

describe('a bridge for a person who is a machine after all', () => {
  test('is called off, and the call ends', async () => {
    const { call, beeps } = await calling();
    await beeps();

    expect(call.log).toContain('second cancel');
    expect(call.stored.find(({ type }) => type.startsWith('transfer'))).toMatchObject(failed);
    expect(call.end().data).toMatchObject({
      ...{ outcome: 'machine', reasonCode: 'Bot-disconnected', machineDetected: true },
      ...{ machineDetection: 'amd_tone_detected', transfer: { outcome: 'machine' } },
    });
  });

  test('is called off, and the call goes on to leave its message', async () => {
    const { call, beeps } = await calling({ voicemail });
    await beeps();
    expect(call.log).toContain('second cancel');
    expect(call.endings()).toEqual([]);
    call.media().observe({ kind: 'plan', report: { kind: 'over', outcome: 'voicemail-left' } });
    await call.settle();

    expect(call.end().data).toMatchObject({
      ...{ outcome: 'voicemail-left', transfer: { outcome: 'machine' } },
    });
  });

  test('is called off, and the call stays up with `onFailure: stay`', async () => {
    const { call, beeps } = await calling({ bridge: { ...bridge, onFailure: 'stay' } });
    await beeps();

    expect(call.stored.at(-2)).toMatchObject({ type: 'transfer-failed' });
    expect(call.endings()).toEqual([]);
  });

  test.each(['detect', 'disconnect'] as const)(
    'stays up if the agent has answered, with %s',
    async (machineDetection) => {
      const { call, beeps, agentAnswers } = await calling({ machineDetection });
      await agentAnswers();
      await beeps();

      expect(call.log).not.toContain('second cancel');
      expect(call.log).not.toContain('second bye');
      expect(call.types().slice(-3)).toEqual(['transfer-answered', 'amd', 'amd']);
      expect(call.endings()).toEqual([]);
    },
  );

  test('stays up if it does not rest on a verdict', async () => {
    const { call, beeps } = await calling({ bridge: { ...bridge, on: 'answered' } });
    await beeps();

    expect(call.log).not.toContain('second cancel');
    expect(call.endings()).toEqual([]);
  });
});
