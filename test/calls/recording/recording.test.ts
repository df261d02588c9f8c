// The recording of a call as its machine sees it: when it begins, what commands do to it, what it
// hides, and how it ends. The media is scripted; `test/scenarios/recording.test.ts` has a real one.

import { describe, expect, test } from 'vitest';
import type { DialoutRequest } from '../../../src/calls/call-types.ts';
import type { CallEvent } from '../../../src/calls/contract/call-event.ts';
import type { LegEvent, RecordingPort } from '../../../src/calls/ports.ts';
import { recordObstacle } from '../../../src/calls/recording/record-obstacles.ts';
import type {
  RecordingReport,
  RequestedRecording,
} from '../../../src/calls/recording/recording.ts';
import type { RecordAction } from '../../../src/calls/recording/recording-contract.ts';
import { recordingMembers } from '../../../src/calls/recording/recording-progress.ts';
import type { TransferRequest } from '../../../src/calls/transfer/transfer.ts';
import { rebuild } from '../../../src/recovery/rebuild.ts';
import { acceptedCall, type ScriptOptions, scriptCall } from '../../support/scripted-call.ts';

const wanted: RequestedRecording = {
  ...{ from: 'answer', pauseOnKeys: false, fill: 'silence', required: false },
};
const notice = { playbackId: 'recording', source: 'recording', sound: 'sound:notice' } as const;

function placeCall(
  recording: Partial<RequestedRecording> | undefined,
  request: Partial<DialoutRequest> = {},
  options: ScriptOptions = {},
) {
  const call = scriptCall({
    ...options,
    request: {
      machineDetection: 'disabled',
      ...(recording === undefined ? {} : { recording: { ...wanted, ...recording } }),
      ...request,
    },
  });
  return Object.assign(call, {
    report: async (report: RecordingReport) => {
      call.media().observe({ kind: 'recording', report });
      await call.settle();
    },
    starts: () => call.media().observe(started(call.now())),
    record: async (action: RecordAction, commandId: string = action) => {
      const obstacle = recordObstacle(call.actor.getSnapshot().context, action);
      call.actor.send({ type: 'command.record', action, commandId });
      await call.settle();
      return obstacle;
    },
    noticeEnds: async (reason: 'done' | 'stopped' = 'done') => {
      const report = { ...notice, kind: 'finished', reason, playedMs: 2_000 } as const;
      call.media().observe({ kind: 'playback', report });
      await call.settle();
    },
    noticeStarts: () =>
      call.media().observe({
        kind: 'playback',
        report: { ...notice, kind: 'started', sha256: 'a1b2' },
      }),
    press: (digit: string, durationMs = 100) =>
      call.media().observe({ kind: 'dtmf', digit, durationMs }),
    recordings: () => call.log.filter((line) => line.startsWith('record ')),
    events: (prefix = 'recording-') =>
      call.stored
        .filter(({ type }) => type.startsWith(prefix))
        .map(({ type, data }) => ({ type: type.slice(prefix.length), ...data })),
    digits: () => call.stored.flatMap((event) => (event.type === 'dtmf' ? event.data.digit : [])),
    /** The person hangs up, and the media reports the end of the recording. */
    hangUp: async (durationMs = 8_000, pausedMs = 0) => {
      call.remoteBye();
      await call.settle();
      const end = { kind: 'stopped', reason: 'call-ended', durationMs, pausedMs } as const;
      call.media().observe({ kind: 'recording', report: end });
      await call.settle();
      return call.end().data;
    },
  });
}

function started(at: Date) {
  return { kind: 'recording', report: { kind: 'started', at: at.getTime() } } as const;
}

async function answeredCall(...given: Parameters<typeof placeCall>) {
  const call = placeCall(...given);
  await call.sent();
  await call.answer();
  return call;
}

/** A call that is being recorded. */
async function recordedCall(...given: Parameters<typeof placeCall>) {
  const call = await answeredCall(...given);
  call.starts();
  await call.settle();
  return call;
}

describe('a recording begins', () => {
  test('with the 200 OK, before the answer is stored', async () => {
    let store = (): void => undefined;
    const stored = new Promise<void>((resolve) => {
      store = resolve;
    });
    const call = placeCall(
      { fill: 'cut', pauseOnKeys: true },
      {},
      {
        storeAnswer: async (commit) => {
          await stored;
          commit();
          return 'stored';
        },
      },
    );
    await call.sent();
    await call.answer();

    const { callId, accountId, botId } = acceptedCall();
    expect(call.recorded()).toEqual({
      ...{ callId, accountId, botId, from: 'answer', fill: 'cut', pauseOnKeys: true },
    });
    call.starts();
    await call.settle();
    expect(call.types()).not.toContain('recording-started');

    store();
    await call.settle();
    expect(call.types().slice(-2)).toEqual(['answered', 'recording-started']);
    expect(call.events()).toEqual([
      {
        ...{ type: 'started', from: 'answer', startedAt: call.now().toISOString() },
        ...{ fill: 'cut', pauseOnKeys: true },
      },
    ]);
  });

  test('with the first verdict of a person, which a correction does not take back', async () => {
    const call = await answeredCall({ from: 'person' }, { machineDetection: 'detect' });
    expect(call.recordings()).toEqual([]);
    call.amd('amd_human_detected');
    await call.settle();
    expect(call.recordings()).toEqual(['record start']);
    expect(call.recorded()?.from).toBe('person');

    call.amd('amd_machine_detected', { corrects: 'amd_human_detected' });
    await call.settle();
    expect(call.recordings()).toEqual(['record start']);
  });

  test('never with a machine', async () => {
    const call = await answeredCall({ from: 'person' }, { machineDetection: 'detect' });
    call.amd('amd_machine_detected');
    call.amd('amd_stopped');
    call.remoteBye();
    await call.settle();

    expect(call.recordings()).toEqual([]);
    expect(call.end().data).not.toHaveProperty('recording');
  });

  test('after its announcement, whose end is evidence', async () => {
    const call = await answeredCall({ announce: 'sound:notice' });
    expect(call.log).toContain('play recording');
    call.noticeStarts();
    await call.settle();
    expect(call.recordings()).toEqual([]);

    call.advance(2_000);
    await call.noticeEnds();
    const announcedAt = call.now().toISOString();
    expect(call.recordings()).toEqual(['record start']);
    call.starts();
    await call.settle();
    expect(call.events()).toMatchObject([{ type: 'started', from: 'answer', announcedAt }]);

    call.advance(8_000);
    await call.hangUp();
    expect(call.endings()[0]?.evidence).toEqual({
      sounds: [{ name: 'sound:notice', sha256: 'a1b2' }],
      recording: {
        announcement: { name: 'sound:notice', sha256: 'a1b2' },
        ...{ announcedAt, startedAt: announcedAt, endedAt: call.now().toISOString() },
      },
    });
  });

  test('not if its announcement was cut off', async () => {
    const call = await answeredCall({ announce: 'sound:notice' });
    call.noticeStarts();
    await call.noticeEnds('stopped');

    expect(call.recordings()).toEqual([]);
    expect(call.events()).toEqual([{ type: 'failed', reason: 'announcement', durationMs: 0 }]);
    expect(call.state()).toBe('answered');
    expect(await call.record('start')).toMatch('at most once');
    call.remoteBye();
    await call.settle();
    expect(call.end().data).toMatchObject({
      recording: { state: 'failed', durationMs: 0, pausedMs: 0, reason: 'announcement' },
    });
  });

  test('by a command, with the settings of the request', async () => {
    const call = await answeredCall({ from: 'command', fill: 'cut' });
    expect(call.recordings()).toEqual([]);
    expect(await call.record('start', 'now')).toBeUndefined();
    call.starts();
    await call.settle();

    expect(call.recorded()).toMatchObject({ from: 'command', fill: 'cut' });
    expect(call.events()).toMatchObject([{ type: 'started', from: 'command', commandId: 'now' }]);
  });

  test('with the key that was made before the call was dialled', async () => {
    const encryption = {
      ...{ keyName: 'crm', contentKey: new Uint8Array(32), sealedContentKey: 'c2VhbGVk' },
      wrapped: { algorithm: 'RSA-OAEP-256', key: 'd3JhcHBlZA==' },
    } as const;
    const recordings: RecordingPort = { prepare: async () => ({ ok: true, encryption }) };
    const call = await recordedCall({ key: 'crm' }, {}, { recordings });

    expect(call.recorded()?.encryption).toBe(encryption);
    expect(call.events()).toMatchObject([{ type: 'started', key: 'crm' }]);
    expect(await call.hangUp()).toMatchObject({ recording: { state: 'storing', key: 'crm' } });
    expect(JSON.stringify(call.steps)).not.toContain('c2VhbGVk');
  });
});

describe('a call is not dialled', () => {
  test.each([
    ['its key is unusable', { key: 'crm' }, 'recording.key: the key is gone'],
    ['its announcement is missing', { announce: 'sound:no' }, 'recording.announce: no such sound'],
  ])('if %s', async (_why, recording, reason) => {
    const call = placeCall(
      recording,
      {},
      {
        recordings: { prepare: async () => ({ ok: false, reason: 'the key is gone' }) },
        loadSound: async () => ({ ok: false, reason: 'no such sound' }),
      },
    );
    await call.settle();

    expect(() => call.leg()).toThrow('is not there yet');
    expect(call.end().data).toMatchObject({ outcome: 'gateway-failure', reason });
  });
});

describe('a command', () => {
  test('pauses, resumes and stops the recording, and its id is in the event', async () => {
    const call = await recordedCall({});
    await call.record('pause', 'p');
    await call.report({ kind: 'paused', offsetMs: 1_000, by: 'command' });
    await call.record('resume', 'r');
    await call.report({ kind: 'resumed', offsetMs: 3_000 });
    await call.record('stop', 's');
    const times = { durationMs: 4_000, pausedMs: 2_000 };
    await call.report({ kind: 'stopped', reason: 'command', ...times });

    expect(call.recordings()).toEqual(
      ['start', 'pause', 'resume', 'stop'].map((action) => `record ${action}`),
    );
    expect(call.events().slice(1)).toEqual([
      { type: 'paused', by: 'command', offsetMs: 1_000, commandId: 'p' },
      { type: 'resumed', offsetMs: 3_000, commandId: 'r' },
      { type: 'stopped', reason: 'command', ...times, commandId: 's' },
    ]);
    call.remoteBye();
    await call.settle();
    expect(call.end().data).toMatchObject({ recording: { state: 'storing', ...times } });
  });

  test('takes over a pause for keys, which the media does not report again', async () => {
    const call = await recordedCall({ pauseOnKeys: true });
    await call.report({ kind: 'paused', offsetMs: 1_000, by: 'keys' });
    expect(await call.record('pause', 'p')).toBeUndefined();
    await call.report({ kind: 'paused', offsetMs: 1_000, by: 'command' });

    expect(call.events().slice(1)).toEqual([
      { type: 'paused', by: 'keys', offsetMs: 1_000 },
      { type: 'paused', by: 'command', offsetMs: 1_000, commandId: 'p' },
    ]);
  });

  test('calls a recording off before it begins', async () => {
    const call = await answeredCall({ announce: 'sound:notice' });
    call.noticeStarts();
    expect(await call.record('stop', 's')).toBeUndefined();
    await call.noticeEnds();

    expect(call.recordings()).toEqual([]);
    expect(call.events()).toEqual([
      { type: 'stopped', reason: 'command', durationMs: 0, pausedMs: 0, commandId: 's' },
    ]);
    call.remoteBye();
    await call.settle();
    expect(call.end().data).not.toHaveProperty('recording');
  });

  test('is refused if it has nothing to do', async () => {
    const idle = await answeredCall(undefined);
    for (const action of ['pause', 'resume', 'stop'] as const) {
      expect(await idle.record(action)).toBe('The call is not being recorded.');
    }
    const announced = await answeredCall({ announce: 'sound:notice' });
    expect(await announced.record('pause')).toMatch('announcement');
    const call = await recordedCall({});
    expect(await call.record('start')).toBe('The call is already being recorded.');
    expect(await call.record('resume')).toBe('The recording is not paused.');
    await call.record('pause');
    expect(await call.record('pause')).toBe('The recording is already paused.');
    await call.record('stop');
    for (const action of ['start', 'pause', 'resume', 'stop'] as const) {
      expect(await call.record(action)).toMatch('at most once');
    }
  });
});

describe('digits', () => {
  test('are hidden from the command that pauses to the end of the pause', async () => {
    const call = await recordedCall({});
    call.press('1');
    await call.record('pause');
    call.press('2');
    await call.report({ kind: 'paused', offsetMs: 1_000, by: 'command' });
    call.press('3');
    await call.record('resume');
    await call.report({ kind: 'resumed', offsetMs: 2_000 });
    // A key that was pressed in the pause is reported when it is released.
    call.advance(1_000);
    call.press('4', 1_500);
    call.press('5');
    await call.settle();

    expect(call.digits()).toEqual(['1', '*', '*', '*', '5']);
  });

  test('are hidden from the first one with pauseOnKeys, also by SIP INFO', async () => {
    const call = await recordedCall({ pauseOnKeys: true });
    const info: LegEvent = { kind: 'dtmf', digit: '4', durationMs: 100 };
    call.leg().observe(info);
    await call.report({ kind: 'paused', offsetMs: 1_000, by: 'keys' });
    call.press('2');
    await call.settle();
    expect(call.digits()).toEqual(['*', '*']);
  });

  test('that the call presses are hidden too', async () => {
    const call = await recordedCall({});
    await call.record('pause');
    const keys = { commandId: 'card', digits: '4w1#', durationMs: 100 };
    call.actor.send({ type: 'command.media', command: { kind: 'press', keys } });
    await call.record('resume');
    call.advance(10_000);
    const report = { commandId: 'card', digits: '4w1#', complete: true };
    call.media().observe({ kind: 'keysSent', report });
    await call.settle();

    expect(call.events('dtmf-')).toMatchObject([{ type: 'sent', digits: '*w**' }]);
  });

  test('stay hidden if the recording fails in a pause', async () => {
    const call = await recordedCall({});
    await call.record('pause');
    await call.report({ kind: 'failed', reason: 'disk-full', durationMs: 1_000 });
    call.advance(10_000);
    call.press('7');
    await call.settle();
    expect(call.digits()).toEqual(['*']);
  });

  test('still opt the person out', async () => {
    const call = await recordedCall({ pauseOnKeys: true }, { optOutKey: '9' });
    call.press('9');
    await call.settle();

    expect(call.digits()).toEqual(['*']);
    expect(call.types()).toContain('opted-out');
  });
});

describe('a call that ends', () => {
  test('waits for the end of its recording, which its last notification carries', async () => {
    const call = await recordedCall({});
    call.remoteBye();
    await call.settle();
    expect(call.recordings()).toEqual(['record start', 'record stop']);
    expect(call.types()).not.toContain('completed');

    const times = { durationMs: 8_000, pausedMs: 0 };
    await call.report({ kind: 'stopped', reason: 'call-ended', ...times });
    expect(call.types().slice(-2)).toEqual(['recording-stopped', 'completed']);
    expect(call.end().data).toMatchObject({ recording: { state: 'storing', ...times } });
  });

  test('does not wait for media that says nothing', async () => {
    const call = await recordedCall({});
    call.remoteBye();
    await call.settle();
    call.advance(1_000);
    await call.settle();

    expect(call.events().at(-1)).toMatchObject({ type: 'failed', reason: 'media-failed' });
    expect(call.end().data).toMatchObject({ recording: { state: 'failed' } });
  });

  test('because its media was lost has a failed recording', async () => {
    const call = await recordedCall({});
    call.advance(3_000);
    call.media().observe({ kind: 'failed', reason: 'the worker died' });
    await call.settle();

    const failed = { reason: 'media-failed', durationMs: 3_000 };
    expect(call.events().at(-1)).toEqual({ type: 'failed', ...failed });
    expect(call.end().data).toMatchObject({ recording: { state: 'failed', ...failed } });
  });

  test('in a transfer is recorded to its end', async () => {
    const call = await recordedCall({});
    const transfer: TransferRequest = {
      to: { kind: 'tel', number: '15550111' },
      ...{ caller: '15550199', timeoutMs: 20_000 },
      ...{ mode: 'bridge', keepStream: false, onFailure: 'stay' },
    };
    call.actor.send({ type: 'command.transfer', commandId: 'agent', transfer });
    await call.settle();
    expect(call.recordings()).toEqual(['record start']);
    expect(await call.hangUp()).toMatchObject({ recording: { state: 'storing' } });
  });
});

describe('a recording that fails', () => {
  const full = { kind: 'failed', reason: 'disk-full', durationMs: 2_000 } as const;

  test('does not harm the call', async () => {
    const call = await recordedCall({});
    await call.report(full);
    expect(call.state()).toBe('answered');
    call.remoteBye();
    await call.settle();
    expect(call.recordings()).toEqual(['record start']);
    expect(call.end().data).toMatchObject({
      ...{ outcome: 'completed', reasonCode: 'Caller-disconnected' },
      recording: { state: 'failed', durationMs: 2_000, pausedMs: 0, reason: 'disk-full' },
    });
  });

  test('ends a call that must be recorded', async () => {
    const call = await recordedCall({ required: true });
    await call.report(full);
    expect(call.log).toContain('bye');
    expect(call.end().data).toMatchObject({
      ...{ outcome: 'gateway-failure', reason: 'The call could not be recorded' },
      recording: { state: 'failed', reason: 'disk-full' },
    });
  });

  test('ends such a call if its announcement was cut off', async () => {
    const call = await answeredCall({ required: true, announce: 'sound:notice' });
    call.noticeStarts();
    await call.noticeEnds('stopped');
    expect(call.end().data).toMatchObject({ recording: { reason: 'announcement' } });
  });
});

test('the recording of a lost process is on its way to the store, incomplete', async () => {
  const call = await recordedCall({ announce: 'sound:notice' });
  call.noticeStarts();
  await call.noticeEnds();
  call.starts();
  await call.settle();
  const events: readonly CallEvent[] = call.stored;
  const unfinished = { call: acceptedCall(), ownerId: 'lost', legs: [], events };
  const { progress } = rebuild({ ...unfinished, answeredAt: call.now() }, [], {
    now: call.now(),
    loss: 'lost',
  });

  expect(recordingMembers(progress.recording)).toEqual({
    recording: { state: 'storing', incomplete: true },
  });
  expect(progress.evidence.recording).toEqual({
    announcement: { name: 'sound:notice' },
    ...{ announcedAt: call.now().toISOString(), startedAt: call.now().toISOString() },
  });
});
