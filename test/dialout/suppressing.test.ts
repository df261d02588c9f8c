// What happens to calls when their number is suppressed: which calls are cancelled, on which node,
// and when the suppression is answered.

import { describe, expect, test } from 'vitest';
import type { CallId } from '../../src/calls/contract/identity.ts';
import { createSuppressing } from '../../src/dialout/suppressing.ts';

const app = { accountId: 'acme', appId: 'crm' };
const optOut = { reason: 'opt-out', source: 'web form' } as const;

type Ringing = { readonly callId: CallId; readonly ownerId: string };
const ringingHere: Ringing = { callId: 'call-1' as CallId, ownerId: 'a/1' };
const ringingThere: Ringing = { callId: 'call-2' as CallId, ownerId: 'b/1' };

/** Calls ring until the world ends them. */
function open(ringing: readonly Ringing[], { endsOnCancel = true } = {}) {
  const up = new Map(ringing.map((call) => [call.callId, call]));
  const log: string[] = [];
  const end = (callId: CallId): void => {
    if (endsOnCancel) up.delete(callId);
  };
  const suppressing = createSuppressing(
    {
      ownerId: 'a/1',
      store: {
        put: async (by, suppressions) => {
          log.push(`put ${[...suppressions.keys()].join()} for ${by.accountId}`);
          return 0;
        },
      },
      calls: {
        release: async (accountId, address = 'all') => {
          log.push(`release ${address} for ${accountId}`);
        },
        ringing: async () => [...up.values()],
        stillUp: async (callIds) => callIds.filter((callId) => up.has(callId)),
      },
      registry: {
        refuse: (callId, { rule }) => {
          log.push(`${rule}: ${callId}`);
          end(callId);
        },
      },
      askOwner: (ownerId, callIds) => {
        log.push(`ask ${ownerId}: ${callIds.join()}`);
        for (const callId of callIds) end(callId);
      },
    },
    { patienceMs: 200, roundMs: 10 },
  );
  return { suppressing, log };
}

describe('a suppression', () => {
  test('is stored before the calls to the number are cancelled, each by its owner', async () => {
    const { suppressing, log } = open([ringingHere, ringingThere]);

    const left = await suppressing.suppress(app, '+12025550110', optOut);

    expect(left).toEqual([]);
    expect(log).toEqual([
      'put +12025550110 for acme',
      'release +12025550110 for acme',
      'suppressed: call-1',
      'ask b/1: call-2',
    ]);
  });

  test('names the calls that still ring after a while, having asked again', async () => {
    const { suppressing, log } = open([ringingThere], { endsOnCancel: false });

    const left = await suppressing.suppress(app, '+12025550110', optOut);

    expect(left).toEqual(['call-2']);
    expect(log.filter((line) => line === 'ask b/1: call-2').length).toBeGreaterThan(1);
  });

  test('is answered at once if nobody is being called', async () => {
    const { suppressing } = open([]);

    expect(await suppressing.suppress(app, '+12025550110', optOut)).toEqual([]);
    expect(await suppressing.cancelSuppressed('acme')).toEqual([]);
  });
});
