// What a call does with its plans: it loads the sounds before the INVITE, counts the rounds of
// detection, and reports the message at its end.

import { describe, expect, test } from 'vitest';
import type { RequestedVoicemail } from '../../../src/calls/plans/plans.ts';
import type { PlaybackReport } from '../../../src/calls/playback/playback.ts';
import type { SoundResult } from '../../../src/calls/ports.ts';
import { type ScriptOptions, scriptCall } from '../../support/scripted-call.ts';
import { testSound } from '../../support/test-sound.ts';

const voicemail: RequestedVoicemail = {
  ...{ play: 'sound:offer', ifNoBeep: 'play', waitForBeepMs: 4_000, maxMs: 60_000 },
};
const identity = { playbackId: 'voicemail', source: 'voicemail', sound: 'sound:offer' } as const;
const started: PlaybackReport = { kind: 'started', ...identity, sha256: '0a', afterBeep: true };
const done: PlaybackReport = { kind: 'finished', ...identity, reason: 'done', playedMs: 4_000 };

async function answeredCall(options: ScriptOptions = {}) {
  const call = scriptCall({ ...options, request: { voicemail, ...options.request } });
  await call.sent();
  await call.answer();
  await call.settle();
  return call;
}

const endOf = (call: ReturnType<typeof scriptCall>) => call.end().data;
const amdEventsOf = (call: ReturnType<typeof scriptCall>) =>
  call.stored.flatMap((event) => (event.type === 'amd' ? [event.data.amd] : []));

describe('the message of a plan', () => {
  test('is loaded before the call is dialled, and passed on with the command to detect', async () => {
    const asked: string[] = [];
    let give: (result: SoundResult) => void = () => undefined;
    const call = scriptCall({
      request: { voicemail },
      loadSound: (accountId, reference) => {
        asked.push(`${accountId} ${reference}`);
        return new Promise((resolve) => {
          give = resolve;
        });
      },
    });
    await call.settle();
    expect(asked).toEqual(['account-1 sound:offer']);
    expect(() => call.placed()).toThrow();
    give({ ok: true, sound: testSound('sound:offer', new Uint8Array(8)) });
    await call.settle();
    expect(call.placed().caller).toBe('15550199');
    await call.sent();
    await call.answer();

    expect(call.plans()).toMatchObject({ voicemail: { sound: { name: 'sound:offer' } } });
  });

  test('fails the call before it is dialled if it cannot be loaded', async () => {
    const call = scriptCall({
      request: { voicemail },
      loadSound: async () => ({ ok: false, reason: 'There is no sound offer' }),
    });
    await call.settle();

    expect(() => call.placed()).toThrow();
    expect(endOf(call)).toMatchObject({
      ...{ outcome: 'gateway-failure', reason: 'Voicemail: There is no sound offer' },
    });
    expect(call.log).toContain('media closed');
  });

  test('ends the call, and is reported in its end', async () => {
    const call = await answeredCall();
    call.amd('amd_machine_detected');
    call.media().observe({ kind: 'playback', report: started });
    call.amd('amd_tone_detected');
    call.amd('amd_stopped');
    const startedAt = call.now().toISOString();
    call.media().observe({ kind: 'playback', report: done });
    call.media().observe({ kind: 'plan', report: { kind: 'over', outcome: 'voicemail-left' } });
    await call.settle();

    expect(call.log).toContain('bye');
    expect(endOf(call)).toMatchObject({
      ...{ outcome: 'voicemail-left', reason: '200 OK', reasonCode: 'Bot-disconnected' },
      ...{ machineDetection: 'amd_machine_detected', playedMs: 4_000 },
      voicemail: { startedAt, durationMs: 4_000, complete: true, afterBeep: true },
    });
    expect(endOf(call)).not.toHaveProperty('machineDetected');
  });

  test('is also reported if it was cut short', async () => {
    const call = await answeredCall();
    call.amd('amd_machine_detected');
    call.media().observe({ kind: 'playback', report: started });
    call.remoteBye();
    call
      .media()
      .observe({ kind: 'playback', report: { ...done, reason: 'stopped', playedMs: 700 } });
    call.amd('amd_stopped');
    await call.settle();

    expect(endOf(call)).toMatchObject({
      ...{ outcome: 'completed', reasonCode: 'Caller-disconnected' },
      voicemail: { durationMs: 700, complete: false, afterBeep: true },
    });
  });

  test('ends the call with the outcome machine if no beep came and it is not left', async () => {
    const call = await answeredCall();
    call.amd('amd_machine_detected');
    call.amd('amd_stopped');
    call.media().observe({ kind: 'plan', report: { kind: 'over', outcome: 'machine' } });
    await call.settle();

    expect(endOf(call)).toMatchObject({ outcome: 'machine', machineDetected: true });
    expect(endOf(call)).not.toHaveProperty('voicemail');
  });
});

describe('a screened call', () => {
  test('has two rounds of detection, each with its amd_stopped, and the verdict of the last one', async () => {
    const call = await answeredCall();
    call.amd('amd_machine_detected', { reason: 'call-screening' });
    call.amd('amd_machine_stopped_speaking');
    call.amd('amd_stopped', { reason: 'screened' });
    call.media().observe({ kind: 'plan', report: { kind: 'armed', round: 2 } });
    call.amd('amd_human_detected', { round: 2 });
    call.amd('amd_stopped', { round: 2 });
    call.remoteBye();
    await call.settle();

    expect(endOf(call).machineDetection).toBe('amd_human_detected');
    expect(amdEventsOf(call).map(({ event }) => event)).toEqual([
      ...['amd_machine_detected', 'amd_machine_stopped_speaking', 'amd_stopped'],
      ...['amd_human_detected', 'amd_stopped'],
    ]);
    expect(amdEventsOf(call).map(({ round }) => round)).toEqual([
      ...[undefined, undefined, undefined, 2, 2],
    ]);
  });

  test('emits the amd_stopped of its second round if it ends in it', async () => {
    const call = await answeredCall();
    call.amd('amd_machine_detected', { reason: 'call-screening' });
    call.amd('amd_stopped', { reason: 'screened' });
    call.media().observe({ kind: 'plan', report: { kind: 'armed', round: 2 } });
    call.remoteBye();
    await call.settle();
    expect(call.endings()).toEqual([]);
    call.advance(1_000);
    await call.settle();

    expect(amdEventsOf(call).at(-1)).toMatchObject({ event: 'amd_stopped', round: 2 });
    expect(endOf(call).machineDetection).toBe('amd_machine_detected');
  });
});
