// What a call does with the sounds that it plays: it has them played by command, emits their
// events, waits for them at its end, and reports them in its end.

import { describe, expect, test } from 'vitest';
import type { Playback, PlaybackReport } from '../../../src/calls/playback/playback.ts';
import { rebuild } from '../../../src/recovery/rebuild.ts';
import { acceptedCall, scriptCall } from '../../support/scripted-call.ts';
import { testSound } from '../../support/test-sound.ts';

const identity = { playbackId: 'p1', source: 'command', sound: 'sound:hello' } as const;
const started = { kind: 'started', ...identity, sha256: '0a' } as const;
const done: PlaybackReport = { kind: 'finished', ...identity, reason: 'done', playedMs: 1_250 };
const playback: Playback = {
  ...{ playbackId: 'p1', source: 'command' },
  sound: testSound('sound:hello', new Uint8Array(10_000)),
};

async function answeredCall() {
  const call = scriptCall({ request: { machineDetection: 'disabled' } });
  await call.sent();
  await call.answer();
  await call.settle();
  return call;
}

describe('a sound of a call', () => {
  test('is played by command, emitted as events, and counted at the end of the call', async () => {
    const call = await answeredCall();
    call.actor.send({ type: 'command.media', command: { kind: 'play', playback } });
    expect(call.log).toContain('play p1');
    call.media().observe({ kind: 'playback', report: started });
    call.media().observe({ kind: 'playback', report: done });
    call.remoteBye();
    await call.settle();

    expect(call.types()).toEqual([
      ...['dialing', 'answered', 'playback-started', 'playback-finished', 'completed'],
    ]);
    expect(call.stored.at(-2)?.data).toEqual({
      commandId: 'p1',
      ...identity,
      reason: 'done',
      playedMs: 1_250,
    });
    expect(call.end().data).toMatchObject({ playedMs: 1_250 });
    expect(call.end().data).not.toHaveProperty('voicemail');
  });

  test('is stopped by command', async () => {
    const call = await answeredCall();
    call.actor.send({ type: 'command.media', command: { kind: 'play', playback } });
    call.actor.send({ type: 'command.media', command: { kind: 'stopPlayback' } });

    expect(call.log.slice(-2)).toEqual(['play p1', 'stopPlayback']);
  });

  test('delays the end of the call until it has finished', async () => {
    const call = await answeredCall();
    call.actor.send({ type: 'command.media', command: { kind: 'play', playback } });
    call.media().observe({ kind: 'playback', report: started });
    call.remoteBye();
    await call.settle();
    expect(call.endings()).toEqual([]);
    expect(call.log).toContain('stopPlayback');
    call
      .media()
      .observe({ kind: 'playback', report: { ...done, reason: 'stopped', playedMs: 300 } });
    await call.settle();

    expect(call.types().slice(-2)).toEqual(['playback-finished', 'completed']);
    expect(call.end().data).toMatchObject({ playedMs: 300 });
  });

  test('is reported as failed if the worker does not report its end in time', async () => {
    const call = await answeredCall();
    call.actor.send({ type: 'command.media', command: { kind: 'play', playback } });
    call.media().observe({ kind: 'playback', report: started });
    call.remoteBye();
    call.advance(1_000);
    await call.settle();

    const finished = call.stored.find(({ type }) => type === 'playback-finished');
    expect(finished?.data).toEqual({ commandId: 'p1', ...identity, reason: 'failed', playedMs: 0 });
    expect(call.types().at(-1)).toBe('completed');
  });

  test('is absent from the end of a call that plays no sound', async () => {
    const call = await answeredCall();
    call.remoteBye();
    await call.settle();

    expect(call.log).not.toContain('stopPlayback');
    expect(call.end().data).not.toHaveProperty('playedMs');
  });

  test('is counted by the process that records the end of a lost call', async () => {
    const call = await answeredCall();
    call.media().observe({ kind: 'playback', report: started });
    call.media().observe({ kind: 'playback', report: done });
    call
      .media()
      .observe({ kind: 'playback', report: { ...started, source: 'voicemail', afterBeep: true } });
    const { progress } = rebuild(
      {
        ...{ call: acceptedCall({ machineDetection: 'disabled' }), ownerId: 'gone' },
        ...{ events: call.stored, legs: [], answeredAt: call.now() },
      },
      [],
      { now: call.now(), loss: 'lost' },
    );

    expect(progress.playback).toMatchObject({
      playedMs: 1_250,
      voicemail: { durationMs: 0, complete: false, afterBeep: true },
    });
  });
});
