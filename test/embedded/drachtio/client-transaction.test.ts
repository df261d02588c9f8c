import { describe, expect, test } from 'vitest';
import type { SipResponse } from '../../../src/embedded/drachtio/message/sip-message.ts';
import {
  InviteClientTransaction,
  NonInviteClientTransaction,
} from '../../../src/embedded/drachtio/transaction/client-transaction.ts';
import { defaultSipTimers } from '../../../src/embedded/drachtio/transaction/engine-timing.ts';
import { SimulatedClock } from './simulated-clock.ts';

const answer = (status: number): SipResponse => ({
  kind: 'response',
  status,
  reason: 'x',
  headers: [],
  body: '',
});

function harness(reliable = false) {
  const clock = new SimulatedClock();
  const sentAtMs: number[] = [];
  const events: string[] = [];
  const deps = {
    clock,
    timers: defaultSipTimers,
    reliable,
    sendRequest: () => void sentAtMs.push(clock.now()),
    sendAck: () => void events.push('ack'),
    onResponse: (response: SipResponse) => void events.push(String(response.status)),
    onTimeout: () => void events.push(`timeout at ${clock.now()}`),
    onRingTimeout: () => void events.push(`ring timeout at ${clock.now()}`),
    onTerminated: () => void events.push('terminated'),
  };
  return { clock, sentAtMs, events, deps };
}

describe('INVITE client transaction (RFC 3261 section 17.1.1, RFC 6026)', () => {
  test('retransmits over UDP at doubling intervals and times out after 64 * T1', () => {
    const { clock, sentAtMs, events, deps } = harness();
    new InviteClientTransaction(deps).start();

    clock.advance(60_000);

    expect(sentAtMs).toEqual([0, 500, 1_500, 3_500, 7_500, 15_500, 31_500]);
    expect(events).toEqual(['timeout at 32000', 'terminated']);
    expect(clock.pending).toBe(0);
  });

  test('sends once over TCP and times out after 64 * T1', () => {
    const { clock, sentAtMs, events, deps } = harness(true);
    new InviteClientTransaction(deps).start();

    clock.advance(60_000);

    expect(sentAtMs).toEqual([0]);
    expect(events).toEqual(['timeout at 32000', 'terminated']);
  });

  test('stops retransmitting at the first provisional response and rings until timer C', () => {
    const { clock, sentAtMs, events, deps } = harness();
    const transaction = new InviteClientTransaction(deps);
    transaction.start();

    transaction.receive(answer(100));
    clock.advance(10_000);
    transaction.receive(answer(180));
    clock.advance(184_999);
    expect(events).toEqual(['100', '180']);
    clock.advance(1);

    expect(sentAtMs).toEqual([0]);
    expect(events).toEqual(['100', '180', 'ring timeout at 195000']);
  });

  test('acknowledges each copy of a failure, passes on the first and ends after 32 s', () => {
    const { clock, events, deps } = harness();
    const transaction = new InviteClientTransaction(deps);
    transaction.start();

    transaction.receive(answer(486));
    transaction.receive(answer(486));
    clock.advance(32_000);

    expect(events).toEqual(['ack', '486', 'ack', 'terminated']);
  });

  test('ends at once on a failure over TCP', () => {
    const { events, deps } = harness(true);
    const transaction = new InviteClientTransaction(deps);
    transaction.start();

    transaction.receive(answer(486));

    expect(events).toEqual(['ack', '486', 'terminated']);
  });

  test('passes on every copy of a 2xx while accepted, and no failure after it', () => {
    const { clock, events, deps } = harness();
    const transaction = new InviteClientTransaction(deps);
    transaction.start();

    transaction.receive(answer(200));
    transaction.receive(answer(200));
    transaction.receive(answer(486));
    clock.advance(32_000);
    transaction.receive(answer(200));

    expect(events).toEqual(['200', '200', 'terminated']);
  });

  test('times out 64 * T1 after a CANCEL without final response, even if the call still rings', () => {
    const { clock, events, deps } = harness();
    const transaction = new InviteClientTransaction(deps);
    transaction.start();
    transaction.receive(answer(180));

    transaction.expectFinalSoon();
    clock.advance(20_000);
    transaction.receive(answer(180));
    clock.advance(12_000);

    expect(events).toEqual(['180', '180', 'timeout at 32000', 'terminated']);
  });

  test('fails with its transport only before any response', () => {
    const calling = harness();
    const first = new InviteClientTransaction(calling.deps);
    first.start();
    expect(first.fail()).toBe(true);
    expect(calling.clock.pending).toBe(0);

    const ringing = harness();
    const second = new InviteClientTransaction(ringing.deps);
    second.start();
    second.receive(answer(180));
    expect(second.fail()).toBe(false);
    expect(second.state).toBe('proceeding');
  });
});

describe('non-INVITE client transaction (RFC 3261 section 17.1.2)', () => {
  test('retransmits over UDP at intervals up to T2 and times out after 64 * T1', () => {
    const { clock, sentAtMs, events, deps } = harness();
    new NonInviteClientTransaction(deps).start();

    clock.advance(40_000);

    expect(sentAtMs).toEqual([
      0, 500, 1_500, 3_500, 7_500, 11_500, 15_500, 19_500, 23_500, 27_500, 31_500,
    ]);
    expect(events).toEqual(['timeout at 32000', 'terminated']);
  });

  test('absorbs copies of the final response for T4', () => {
    const { clock, events, deps } = harness();
    const transaction = new NonInviteClientTransaction(deps);
    transaction.start();

    transaction.receive(answer(200));
    transaction.receive(answer(200));
    expect(transaction.state).toBe('completed');
    clock.advance(5_000);

    expect(events).toEqual(['200', 'terminated']);
    expect(clock.pending).toBe(0);
  });
});
