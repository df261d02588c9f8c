// What a call does with its stream to a bot: when it is prepared and opened, which events it emits,
// and how it ends a call.

import { describe, expect, test } from 'vitest';
import type { RequestedStream, StreamCounts } from '../../../src/calls/stream/stream.ts';
import { streamObstacles } from '../../../src/calls/stream/stream-effects.ts';
import type { TransferRequest } from '../../../src/calls/transfer/transfer.ts';
import { type ScriptOptions, scriptCall, streamSettings } from '../../support/scripted-call.ts';

const stream: RequestedStream = {
  ...{ url: 'wss://bot.example/audio', connect: 'answered', parameters: {} },
};
const counts: StreamCounts = {
  ...{ connections: 1, playedMs: 500, droppedMs: 0, underruns: 0 },
  ...{ unheardMs: 0, ignoredMessages: 0 },
};
const opened = { kind: 'opened', connection: 1, openMs: 12 } as const;

const transfer: TransferRequest = {
  ...{ to: { kind: 'tel', number: '4930123456' }, mode: 'bridge', timeoutMs: 20_000 },
  ...{ caller: '15550199', keepStream: false, onFailure: 'stay' },
};

async function answeredCall(options: ScriptOptions = {}) {
  const call = scriptCall({
    ...options,
    request: { machineDetection: 'disabled', stream, ...options.request },
  });
  await call.sent();
  call.ring();
  await call.settle();
  await call.answer();
  await call.settle();
  return call;
}

const endOf = (call: ReturnType<typeof scriptCall>) => call.end().data;

describe('the stream of a call', () => {
  test('is prepared when the phone rings, and opened at the answer', async () => {
    const call = await answeredCall();

    expect(call.log.filter((line) => line.endsWith('Stream'))).toEqual([
      'prepareStream',
      'answerStream',
    ]);
  });

  test('is closed if the answer cannot be recorded, without waiting until the end is', async () => {
    const call = await answeredCall({ storeAnswer: () => new Promise(() => {}) });
    call.advance(4_000);
    await call.settle();

    expect(call.log).toContain('stopStream call-ended');
  });

  test('is not opened if the request has none', async () => {
    const call = scriptCall();
    await call.sent();
    call.ring();
    await call.answer();
    call.leg().observe({ kind: 'ended', end: { at: call.now(), by: 'remote', reason: 'BYE' } });
    await call.settle();

    expect(call.log.filter((line) => line.includes('Stream'))).toEqual([]);
  });

  test('is emitted after the answer, even if it opened before the answer was stored', async () => {
    let store = (): void => undefined;
    const call = await answeredCall({
      storeAnswer: () =>
        new Promise((resolve) => {
          store = () => resolve('stored');
        }),
    });
    call.media().observe({ kind: 'stream', ordinal: 0, report: opened });
    expect(call.types()).not.toContain('stream-started');
    store();
    await call.settle();

    expect(call.types().slice(-2)).toEqual(['answered', 'stream-started']);
    expect(call.stored.at(-1)?.data).toEqual({ connection: 1, openMs: 12 });
  });

  test('delays the end of the call until it is over', async () => {
    const call = await answeredCall();
    call.media().observe({ kind: 'stream', ordinal: 0, report: opened });
    call.leg().observe({ kind: 'ended', end: { at: call.now(), by: 'remote', reason: 'BYE' } });
    await call.settle();
    expect(call.log).toContain('stopStream call-ended');
    expect(call.endings()).toEqual([]);

    call.media().observe({
      kind: 'stream',
      ordinal: 0,
      report: { kind: 'stopped', reason: 'call-ended', counts },
    });
    await call.settle();
    expect(call.types().at(-1)).toBe('completed');
    expect(call.types().at(-2)).toBe('stream-stopped');
  });

  test('is emitted as over if the worker does not report its end in time', async () => {
    const call = await answeredCall();
    call.media().observe({ kind: 'stream', ordinal: 0, report: opened });
    call.leg().observe({ kind: 'ended', end: { at: call.now(), by: 'remote', reason: 'BYE' } });
    call.advance(1_000);
    await call.settle();

    const stopped = call.stored.find(({ type }) => type === 'stream-stopped');
    expect(stopped?.data).toEqual({ reason: 'call-ended' });
    expect(endOf(call)).toMatchObject({ reasonCode: 'Caller-disconnected' });
  });
});

describe('a bot', () => {
  test('hangs up by closing its stream', async () => {
    const call = await answeredCall();
    call.media().observe({ kind: 'stream', ordinal: 0, report: opened });
    call.media().observe({ kind: 'stream', ordinal: 0, report: { kind: 'botLeft', counts } });
    await call.settle();

    expect(call.log).toContain('bye');
    expect(call.stored.find(({ type }) => type === 'stream-stopped')?.data).toEqual({
      reason: 'bot-closed',
      ...counts,
    });
    expect(endOf(call)).toMatchObject({
      ...{ outcome: 'completed', reason: '200 OK', reasonCode: 'Bot-disconnected' },
    });
  });

  test('fails the call if it cannot be reached, and each attempt is emitted', async () => {
    const call = await answeredCall();
    call
      .media()
      .observe({ kind: 'stream', ordinal: 0, report: { kind: 'broken', reason: 'ECONNREFUSED' } });
    call
      .media()
      .observe({ kind: 'stream', ordinal: 0, report: { kind: 'lost', reason: 'ECONNREFUSED' } });
    await call.settle();

    const failed = call.stored.filter(({ type }) => type === 'stream-failed');
    expect(failed.map(({ data }) => data)).toEqual([
      { reason: 'ECONNREFUSED', willRetry: true },
      { reason: 'ECONNREFUSED', willRetry: false },
    ]);
    expect(call.log).toContain('bye');
    expect(endOf(call)).toMatchObject({
      ...{ outcome: 'bot-failure', reason: 'Bot unreachable', reasonCode: 'Bot-disconnected' },
    });
  });

  test('counts as unreachable if its address cannot be read', async () => {
    const call = await answeredCall({
      streamSettings: () => Promise.reject(new Error('SQL is unreachable')),
    });

    expect(endOf(call)).toMatchObject({ outcome: 'bot-failure' });
  });

  test('that reconnects endlessly is emitted up to a bound, and its end always', async () => {
    const call = await answeredCall({ limits: { maxStreamEvents: 4 } });
    for (let connection = 1; connection <= 10; connection += 1) {
      call.media().observe({ kind: 'stream', ordinal: 0, report: { ...opened, connection } });
      call
        .media()
        .observe({ kind: 'stream', ordinal: 0, report: { kind: 'broken', reason: 'closed-1012' } });
    }
    call.media().observe({ kind: 'stream', ordinal: 0, report: { kind: 'botLeft', counts } });
    await call.settle();

    const emitted = call.types().filter((type) => type.startsWith('stream'));
    expect(emitted).toEqual([
      ...['stream-started', 'stream-failed', 'stream-started', 'stream-failed', 'stream-stopped'],
    ]);
  });
});

describe('a stream by command', () => {
  const begin = (call: ReturnType<typeof scriptCall>, commandId: string) =>
    call.actor.send({ type: 'command.stream', commandId, stream });
  const streamLog = (call: ReturnType<typeof scriptCall>) =>
    call.log.filter((line) => /^(answer|stop)Stream/.test(line));
  const streamEventsOf = (call: ReturnType<typeof scriptCall>) =>
    call.stored.filter(({ type }) => type.startsWith('stream'));
  const stoppedCounts = { kind: 'stopped', reason: 'replaced', counts } as const;

  test('begins in a call without a stream, and its events name the command', async () => {
    const call = await answeredCall({ request: { stream: undefined as never } });
    begin(call, 'one');
    await call.settle();
    call.media().observe({ kind: 'stream', ordinal: 1, report: opened });
    call.remoteBye();
    call.media().observe({
      kind: 'stream',
      ordinal: 1,
      report: { kind: 'stopped', reason: 'call-ended', counts },
    });
    await call.settle();

    expect(streamLog(call)).toEqual(['answerStream 1', 'stopStream call-ended']);
    expect(streamEventsOf(call)).toMatchObject([
      { type: 'stream-started', data: { commandId: 'one', connection: 1, openMs: 12 } },
      { type: 'stream-stopped', data: { commandId: 'one', reason: 'call-ended', ...counts } },
    ]);
  });

  test('leaves the call up if it is lost after a failed transfer: the application commanded both', async () => {
    const call = await answeredCall({ request: { stream: undefined as never } });
    begin(call, 'one');
    await call.settle();
    call.media().observe({ kind: 'stream', ordinal: 1, report: opened });
    const asked: TransferRequest = { ...transfer, onFailure: 'hangup' };
    call.actor.send({ type: 'command.transfer', commandId: 'agent', transfer: asked });
    await call.settle();
    const busy = { at: call.now(), sipStatus: 486, reason: 'Busy Here', kind: 'response' } as const;
    call.secondLeg().observe({ kind: 'failed', failure: busy });
    await call.settle();
    call
      .media()
      .observe({ kind: 'stream', ordinal: 1, report: { kind: 'lost', reason: 'ECONNREFUSED' } });
    await call.settle();

    expect(call.types()).toContain('transfer-failed');
    expect(call.endings()).toEqual([]);
  });

  test('replaces the earlier stream, whose bot can no longer hang up', async () => {
    const call = await answeredCall();
    call.media().observe({ kind: 'stream', ordinal: 0, report: opened });
    begin(call, 'one');
    begin(call, 'two');
    await call.settle();
    // It was connecting when it was stopped.
    call.media().observe({ kind: 'stream', ordinal: 0, report: { kind: 'botLeft', counts } });
    call.media().observe({ kind: 'stream', ordinal: 1, report: opened });
    call.media().observe({ kind: 'stream', ordinal: 2, report: opened });
    call.media().observe({ kind: 'stream', ordinal: 1, report: { ...stoppedCounts, reason: 'x' } });
    await call.settle();

    expect(streamLog(call)).toEqual([
      ...['answerStream', 'stopStream replaced', 'stopStream replaced', 'answerStream 2'],
    ]);
    expect(streamEventsOf(call).map(({ type, data }) => ({ type, ...data }))).toMatchObject([
      { type: 'stream-started', connection: 1 },
      // No bot has taken the stream, so its end is emitted without a report of the worker.
      { type: 'stream-stopped', commandId: 'one', stoppedBy: 'two', reason: 'replaced' },
      { type: 'stream-stopped', stoppedBy: 'one', reason: 'bot-closed', playedMs: 500 },
      { type: 'stream-started', commandId: 'two' },
    ]);
    expect(call.endings()).toEqual([]);
    call.media().observe({ kind: 'stream', ordinal: 2, report: { kind: 'botLeft', counts } });
    await call.settle();
    expect(endOf(call)).toMatchObject({ reasonCode: 'Bot-disconnected', outcome: 'completed' });
  });

  test('is ended by a command, without a hang-up', async () => {
    const call = await answeredCall();
    call.media().observe({ kind: 'stream', ordinal: 0, report: opened });
    call.actor.send({ type: 'command.stream', commandId: 'none' });
    call.media().observe({
      kind: 'stream',
      ordinal: 0,
      report: { kind: 'stopped', reason: 'command', counts },
    });
    await call.settle();

    expect(streamLog(call).at(-1)).toBe('stopStream command');
    expect(streamEventsOf(call).at(-1)?.data).toEqual({
      stoppedBy: 'none',
      reason: 'command',
      ...counts,
    });
    expect(call.state()).toBe('answered');
  });

  test('leaves the call up if it fails, and another stream may begin', async () => {
    const call = await answeredCall();
    call.media().observe({ kind: 'stream', ordinal: 0, report: opened });
    begin(call, 'one');
    call.media().observe({ kind: 'stream', ordinal: 0, report: stoppedCounts });
    call
      .media()
      .observe({ kind: 'stream', ordinal: 1, report: { kind: 'lost', reason: 'ECONNREFUSED' } });
    await call.settle();
    expect(streamEventsOf(call).at(-1)).toMatchObject({
      type: 'stream-failed',
      data: { commandId: 'one', reason: 'ECONNREFUSED', willRetry: false },
    });
    expect(call.state()).toBe('answered');

    begin(call, 'two');
    await call.settle();
    expect(streamLog(call).at(-1)).toBe('answerStream 2');
  });

  test('is emitted as failed if its settings cannot be read', async () => {
    const call = await answeredCall({
      streamSettings: async ({ ordinal }) => {
        if (ordinal === 0) return streamSettings;
        throw new Error('SQL is unreachable');
      },
    });
    begin(call, 'one');
    await call.settle();

    expect(streamEventsOf(call).at(-1)?.data).toMatchObject({ reason: 'settings-unreadable' });
    expect(call.state()).toBe('answered');
  });

  test('does not begin while the call is transferred, leaves a message, answers a screening or ends', async () => {
    const call = await answeredCall();
    const obstacles = () => streamObstacles(call.actor.getSnapshot().context);
    expect(obstacles()).toEqual({ toBegin: undefined, toEnd: undefined });

    call.media().observe({ kind: 'plan', report: { kind: 'held', by: 'voicemail' } });
    expect(obstacles().toBegin).toBe('The call is leaving a message.');
    begin(call, 'one');
    call.media().observe({ kind: 'plan', report: { kind: 'held', by: 'screening' } });
    expect(obstacles().toBegin).toBe('The call is answering a call screening.');
    call.media().observe({ kind: 'plan', report: { kind: 'held', by: undefined } });
    expect(obstacles().toBegin).toBeUndefined();
    call.actor.send({ type: 'command.transfer', commandId: 'agent', transfer });
    expect(obstacles().toBegin).toBe('The call is being transferred.');
    begin(call, 'two');
    await call.settle();

    expect(streamLog(call)).toEqual(['answerStream']);
  });

  test('begins at most `maxStreams` times', async () => {
    const call = await answeredCall({ limits: { maxStreams: 2 } });
    for (const id of ['one', 'two', 'three']) begin(call, id);
    await call.settle();

    expect(streamLog(call).filter((line) => line.startsWith('answer'))).toEqual([
      ...['answerStream', 'answerStream 2'],
    ]);
    expect(streamObstacles(call.actor.getSnapshot().context).toBegin).toBe(
      'The call has used up the 2 streams that commands may begin.',
    );
  });
});
