// What a call does with its stream to a bot: when it is prepared and told, what is stated of it, and how it ends a call.

import { describe, expect, test } from 'vitest';
import type { RequestedStream, StreamCounts } from '../../src/calls/stream.ts';
import { type ScriptOptions, scriptCall } from '../support/scripted-call.ts';

const stream: RequestedStream = {
  ...{ url: 'wss://bot.example/audio', connect: 'answered', parameters: {} },
};
const counts: StreamCounts = {
  ...{ connections: 1, playedMs: 500, droppedMs: 0, underruns: 0 },
  ...{ unheardMs: 0, ignoredMessages: 0 },
};
const opened = { kind: 'opened', connection: 1, openMs: 12 } as const;

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
  test('is prepared when the phone rings, and told of the answer', async () => {
    const call = await answeredCall();

    expect(call.log.filter((line) => line.endsWith('Stream'))).toEqual([
      'prepareStream',
      'answerStream',
    ]);
  });

  test('is left alone where nobody asked for one', async () => {
    const call = scriptCall();
    await call.sent();
    call.ring();
    await call.answer();
    call.leg().observe({ kind: 'ended', end: { at: call.now(), by: 'remote', reason: 'BYE' } });
    await call.settle();

    expect(call.log.filter((line) => line.includes('Stream'))).toEqual([]);
  });

  test('is stated after the answer, also where it was quicker than the store', async () => {
    let store = (): void => undefined;
    const call = await answeredCall({
      storeAnswer: () =>
        new Promise((resolve) => {
          store = () => resolve('stored');
        }),
    });
    call.media().onStream?.(opened);
    expect(call.types()).not.toContain('stream-started');
    store();
    await call.settle();

    expect(call.types().slice(-2)).toEqual(['answered', 'stream-started']);
    expect(call.stored.at(-1)?.data).toEqual({ connection: 1, openMs: 12 });
  });

  test('is over before its call is, which waits for it', async () => {
    const call = await answeredCall();
    call.media().onStream?.(opened);
    call.leg().observe({ kind: 'ended', end: { at: call.now(), by: 'remote', reason: 'BYE' } });
    await call.settle();
    expect(call.log).toContain('stopStream call-ended');
    expect(call.endings()).toEqual([]);

    call.media().onStream?.({ kind: 'stopped', reason: 'call-ended', counts });
    await call.settle();
    expect(call.types().at(-1)).toBe('completed');
    expect(call.types().at(-2)).toBe('stream-stopped');
  });

  test('is said to be over where nobody says so in time', async () => {
    const call = await answeredCall();
    call.media().onStream?.(opened);
    call.leg().observe({ kind: 'ended', end: { at: call.now(), by: 'remote', reason: 'BYE' } });
    call.advance(1_000);
    await call.settle();

    const stopped = call.stored.find(({ type }) => type === 'stream-stopped');
    expect(stopped?.data).toEqual({ reason: 'call-ended' });
    expect(endOf(call)).toMatchObject({ reasonCode: 'Caller-disconnected' });
  });
});

describe('a bot', () => {
  test('that leaves hangs up', async () => {
    const call = await answeredCall();
    call.media().onStream?.(opened);
    call.media().onStream?.({ kind: 'botLeft', counts });
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

  test('that cannot be reached fails the call, and what was tried is stated', async () => {
    const call = await answeredCall();
    call.media().onStream?.({ kind: 'broken', reason: 'ECONNREFUSED' });
    call.media().onStream?.({ kind: 'lost', reason: 'ECONNREFUSED' });
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

  test('whose address cannot be read is not reachable either', async () => {
    const call = await answeredCall({
      streamSettings: () => Promise.reject(new Error('SQL is unreachable')),
    });

    expect(endOf(call)).toMatchObject({ outcome: 'bot-failure' });
  });

  test('that comes and goes for ever is stated so often, and its end all the same', async () => {
    const call = await answeredCall({ limits: { maxStreamEvents: 4 } });
    for (let connection = 1; connection <= 10; connection += 1) {
      call.media().onStream?.({ ...opened, connection });
      call.media().onStream?.({ kind: 'broken', reason: 'closed-1012' });
    }
    call.media().onStream?.({ kind: 'botLeft', counts });
    await call.settle();

    const stated = call.types().filter((type) => type.startsWith('stream'));
    expect(stated).toEqual([
      ...['stream-started', 'stream-failed', 'stream-started', 'stream-failed', 'stream-stopped'],
    ]);
  });
});
