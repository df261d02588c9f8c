import { describe, expect, test } from 'vitest';
import { defaultSipTimers } from '../../../src/embedded/drachtio/transaction/engine-timing.ts';
import {
  InviteServerTransaction,
  NonInviteServerTransaction,
} from '../../../src/embedded/drachtio/transaction/server-transaction.ts';
import { SimulatedClock } from './simulated-clock.ts';

function harness(reliable = false) {
  const clock = new SimulatedClock();
  const sent: string[] = [];
  const events: string[] = [];
  const deps = {
    clock,
    timers: defaultSipTimers,
    reliable,
    send: (text: string) => void sent.push(`${text} at ${clock.now()}`),
    onAckTimeout: () => void events.push(`no ACK at ${clock.now()}`),
    onAnswerTimeout: () => void events.push(`no answer at ${clock.now()}`),
    onTerminated: () => void events.push('terminated'),
  };
  return { clock, sent, events, deps };
}

describe('INVITE server transaction (RFC 3261 section 17.2.1, RFC 6026)', () => {
  test('repeats its last provisional response for each retransmitted INVITE', () => {
    const { sent, deps } = harness();
    const transaction = new InviteServerTransaction(deps);

    transaction.receiveRetransmit();
    transaction.respond(100, 'trying');
    transaction.receiveRetransmit();
    transaction.respond(180, 'ringing');
    transaction.receiveRetransmit();

    expect(sent).toEqual(['trying at 0', 'trying at 0', 'ringing at 0', 'ringing at 0']);
  });

  test('retransmits a 2xx at intervals up to T2 until it is acknowledged', () => {
    const { clock, sent, events, deps } = harness();
    const transaction = new InviteServerTransaction(deps);

    transaction.respond(200, 'ok');
    clock.advance(60_000);

    expect(sent).toEqual(
      [0, 500, 1_500, 3_500, 7_500, 11_500, 15_500, 19_500, 23_500, 27_500, 31_500].map(
        (atMs) => `ok at ${atMs}`,
      ),
    );
    expect(events).toEqual(['no ACK at 32000', 'terminated']);
  });

  test('stops at the ACK, reports it once, and sends no other response', () => {
    const { clock, sent, events, deps } = harness();
    const transaction = new InviteServerTransaction(deps);
    transaction.respond(200, 'ok');
    clock.advance(600);

    expect(transaction.acknowledge()).toBe(true);
    expect(transaction.acknowledge()).toBe(false);
    expect(transaction.respond(486, 'busy')).toBe(false);
    clock.advance(60_000);

    expect(sent).toEqual(['ok at 0', 'ok at 500']);
    expect(events).toEqual(['terminated']);
    expect(clock.pending).toBe(0);
  });

  test('retransmits a failure until its ACK or 64 * T1', () => {
    const { clock, sent, events, deps } = harness();
    const transaction = new InviteServerTransaction(deps);

    transaction.respond(486, 'busy');
    clock.advance(2_000);
    transaction.acknowledge();
    clock.advance(60_000);

    expect(sent).toEqual(['busy at 0', 'busy at 500', 'busy at 1500']);
    expect(events).toEqual(['terminated']);
  });

  test('reports that the application never answers', () => {
    const { clock, events, deps } = harness();
    new InviteServerTransaction(deps);

    clock.advance(defaultSipTimers.inviteAnswerMs);

    expect(events).toEqual(['no answer at 600000']);
  });
});

describe('non-INVITE server transaction (RFC 3261 section 17.2.2)', () => {
  test('repeats its response for each copy of the request during 64 * T1', () => {
    const { clock, sent, events, deps } = harness();
    const transaction = new NonInviteServerTransaction(deps);

    transaction.receiveRetransmit();
    transaction.respond(200, 'ok');
    clock.advance(1_000);
    transaction.receiveRetransmit();
    clock.advance(31_000);

    expect(sent).toEqual(['ok at 0', 'ok at 1000']);
    expect(events).toEqual(['terminated']);
    expect(transaction.respond(200, 'again')).toBe(false);
  });

  test('ends if there is no answer within 64 * T1', () => {
    const { clock, sent, events, deps } = harness();
    new NonInviteServerTransaction(deps);

    clock.advance(32_000);

    expect(sent).toEqual([]);
    expect(events).toEqual(['no answer at 32000', 'terminated']);
  });
});
