import { describe, expect, test } from 'vitest';
import type { AcceptedCall } from '../../src/calls/call-types.ts';
import type { CallEvent } from '../../src/calls/contract/call-event.ts';
import type { CallId } from '../../src/calls/contract/identity.ts';
import type { Submission } from '../../src/calls/dialout-ports.ts';
import { createIntake, type IntakePorts } from '../../src/dialout/intake.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { acceptedCall } from '../support/call-records.ts';
import { settled } from '../support/dialout-world.ts';

const submission: Submission = {
  appId: 'app-1',
  accountId: 'account-1',
  botId: 'bot-1',
  request: acceptedCall().request,
};

const noneEarlier = async () => undefined;
const notStored = { kind: 'not-stored', cause: new Error('SQL is unreachable') } as const;

function rig(changes: Partial<IntakePorts> & { readonly accept?: () => Promise<never> } = {}) {
  const accepted: AcceptedCall[] = [];
  const stored: CallEvent[] = [];
  const woken: CallId[] = [];
  const now = new Date('2026-03-01T12:00:00.000Z');
  let waiting = 0;
  const intake = createIntake(
    {
      ledger: {
        earlier: noneEarlier,
        accept: async (call) => {
          await changes.accept?.();
          accepted.push(call);
          return { kind: 'accepted' };
        },
      },
      taking: {
        accepted: ({ callId }) => void woken.push(callId),
        takeAlong: () => undefined,
        waiting: () => new Map([[submission.request.trunk, waiting]]),
      },
      limitsOf: () => undefined,
      queuedNotification: () => undefined,
      onStored: (event) => void stored.push(event),
      isStopping: () => false,
      clock: { now: () => now },
      logger: silentLogger,
      ...changes,
    },
    { maxQueued: 3, queueTimeoutMs: 300_000 },
  );
  return {
    intake,
    accepted,
    stored,
    woken,
    setWaiting: (count: number) => {
      waiting = count;
    },
  };
}

describe('the intake', () => {
  test('answers when SQL has stored the call, publishes `queued`, and has the call taken', async () => {
    const { intake, accepted, stored, woken } = rig();
    const result = await intake.submit(submission);

    const [call] = accepted;
    expect(result).toEqual({
      kind: 'accepted',
      answer: { sid: call?.sid, callId: call?.callId, conversationId: call?.conversationId },
    });
    expect(stored).toMatchObject([{ type: 'queued', eventSequence: 1, callId: call?.callId }]);
    expect(woken).toEqual([call?.callId]);
  });

  test('publishes `queued` only when SQL has stored it, and before the call is taken', async () => {
    const steps: string[] = [];
    const { intake } = rig({
      ledger: {
        earlier: noneEarlier,
        accept: async () => {
          await settled();
          steps.push('SQL');
          return { kind: 'accepted' };
        },
      },
      onStored: ({ type }) => void steps.push(type),
      taking: {
        accepted: () => void steps.push('taken'),
        takeAlong: () => undefined,
        waiting: () => new Map(),
      },
    });
    await intake.submit(submission);

    expect(steps).toEqual(['SQL', 'queued', 'taken']);
  });

  test('publishes nothing if an app is over its limit', async () => {
    const { intake, stored, woken } = rig({
      ledger: {
        earlier: noneEarlier,
        accept: async () => ({ kind: 'refused', limit: 'callsAtOnce' }),
      },
    });

    expect(await intake.submit(submission)).toMatchObject({
      kind: 'limit-reached',
      limit: 'callsAtOnce',
    });
    expect([stored, woken]).toEqual([[], []]);
  });

  test('reports that SQL did not store the call, and wakes no taker', async () => {
    const { intake, stored, woken } = rig({
      ledger: { earlier: noneEarlier, accept: async () => notStored },
    });

    expect(await intake.submit(submission)).toMatchObject({
      kind: 'unavailable',
      reason: 'the request could not be stored',
    });
    expect([stored, woken]).toEqual([[], []]);
  });

  test('does not refuse a call that SQL may have stored, and wakes no taker', async () => {
    const { intake, stored, woken } = rig({
      accept: () => Promise.reject(new Error('the answer is lost')),
    });

    expect(await intake.submit(submission)).toMatchObject({ kind: 'unknown', retryAfterS: 5 });
    expect([stored, woken]).toEqual([[], []]);
  });

  test('does not refuse a request that could not be stored but may have been accepted before', async () => {
    const { intake } = rig({ ledger: { earlier: noneEarlier, accept: async () => notStored } });
    const idempotency = { key: 'key-1', requestHash: 'hash-1' };

    expect(await intake.submit({ ...submission, idempotency })).toMatchObject({ kind: 'unknown' });
  });

  test.each([
    { kind: 'conflict' },
    { kind: 'replayed', answer: { sid: 'sid-1', callId: 'call-1', conversationId: 'c-1' } },
  ] as const)('an idempotency key that is known ($kind) starts nothing', async (earlier) => {
    const { intake, stored, woken } = rig({
      ledger: { earlier: noneEarlier, accept: async () => earlier },
    });
    const idempotency = { key: 'key-1', requestHash: 'hash-1' };

    expect(await intake.submit({ ...submission, idempotency })).toEqual(earlier);
    expect([stored, woken]).toEqual([[], []]);
  });

  test('refuses calls that a trunk could not dial in time', async () => {
    const limited = rig({ limitsOf: () => ({ callsPerSecond: 0.01 }) });
    // The rate allows three in five minutes.
    limited.setWaiting(2);
    expect(await limited.intake.submit(submission)).toMatchObject({ kind: 'accepted' });
    const hasty = { ...submission, request: { ...submission.request, queueTimeoutMs: 60_000 } };
    expect(await limited.intake.submit(hasty)).toMatchObject({ kind: 'full' });
  });

  test('fills in the queue time-out if a request sets none', async () => {
    const { intake, accepted } = rig();
    const { queueTimeoutMs: _, ...request } = submission.request;
    await intake.submit({ ...submission, request });
    await intake.submit({ ...submission, request: { ...request, queueTimeoutMs: 1_000 } });

    expect(accepted.map((call) => call.request.queueTimeoutMs)).toEqual([300_000, 1_000]);
  });

  test('refuses calls when the queue is full', async () => {
    const { intake, accepted, setWaiting } = rig();
    setWaiting(3);
    expect(await intake.submit(submission)).toMatchObject({ kind: 'full' });
    setWaiting(2);
    expect(await intake.submit(submission)).toMatchObject({ kind: 'accepted' });
    expect(accepted).toHaveLength(1);
  });
});
