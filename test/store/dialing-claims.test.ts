import { describe, expect, test } from 'vitest';
import type { AcceptedCall } from '../../src/calls/call-types.ts';
import type { CallId } from '../../src/calls/contract/identity.ts';
import { DialingClaims } from '../../src/store/dialing-claims.ts';
import { acceptedCall } from '../support/call-records.ts';

/** A table with one call, and answers that can be lost: before the claim was stored, or after. */
function scriptedTable(
  call: AcceptedCall,
  answers: readonly ('lost-before' | 'lost-after' | 'told')[],
) {
  let owner: string | undefined;
  const script = [...answers];
  return new DialingClaims(async (_, claimant, isRetry) => {
    await Promise.resolve();
    const answer = script.shift() ?? 'told';
    if (answer === 'lost-before') throw new Error('connection lost');
    const isFree = owner === undefined || (isRetry && owner === claimant);
    if (isFree) owner = claimant;
    if (answer === 'lost-after') throw new Error('connection lost');
    return isFree ? call : undefined;
  });
}

describe('claims for dialing when the database goes away', () => {
  const call = acceptedCall();
  const { callId } = call;

  test('a claim that stands without its owner being told may be tried again, and is handed out once', async () => {
    const claims = scriptedTable(call, ['lost-after']);

    await expect(claims.claim(callId, 'me')).rejects.toThrow('connection lost');
    expect(claims.doubtful()).toEqual([callId]);
    expect(await claims.claim(callId, 'me')).toBe(call);
    expect(claims.doubtful()).toEqual([]);
    expect(await claims.claim(callId, 'me')).toBeUndefined();
  });

  test('a claim that never arrived may be tried again', async () => {
    const claims = scriptedTable(call, ['lost-before', 'lost-before']);

    await expect(claims.claim(callId, 'me')).rejects.toThrow();
    await expect(claims.claim(callId, 'me')).rejects.toThrow();
    expect(await claims.claim(callId, 'me')).toBe(call);
  });

  test('claims of the same call at the same time share one fate, and hand it out once', async () => {
    const claims = scriptedTable(call, ['lost-after', 'told']);
    const claimThrice = () => Promise.allSettled([1, 2, 3].map(() => claims.claim(callId, 'me')));

    expect((await claimThrice()).map(({ status }) => status)).toEqual(Array(3).fill('rejected'));
    const again = await claimThrice();

    expect(again.filter((each) => each.status === 'fulfilled' && each.value === call)).toHaveLength(
      1,
    );
    expect(again.filter((each) => each.status === 'rejected')).toEqual([]);
  });

  test('a call that another process has is not doubtful', async () => {
    const claims = new DialingClaims(() => Promise.resolve(undefined));

    expect(await claims.claim('call-x' as CallId, 'me')).toBeUndefined();
    expect(claims.doubtful()).toEqual([]);
  });
});
