// Finds the calls that a new suppression concerns: taken calls that nobody has answered yet, and
// calls that wait for a rule.

import type { Pool } from 'pg';
import type { DialTarget } from '../../calls/call-types.ts';
import type { CallId } from '../../calls/contract/identity.ts';
import { suppressedAddressOf } from '../../calls/rules/suppression.ts';
import { calleeNumber } from '../schema/calls.ts';
import { releaseSuppressed } from './held-calls.ts';
import { inForce } from './suppressions.ts';

export type SuppressedCall = { readonly callId: CallId; readonly ownerId: string };

export type SuppressedCalls = {
  /**
   * Lets the sweep end the account's calls to the address that wait for a rule. Without `address`,
   * the calls to all suppressed numbers.
   */
  release(accountId: string, address?: string): Promise<void>;
  /**
   * Returns the account's taken, unanswered calls to the address, or to any suppressed address if
   * `address` is omitted.
   */
  ringing(accountId: string, address?: string): Promise<readonly SuppressedCall[]>;
  /** Returns those of the calls that may still ring: they are neither answered nor off the wire. */
  stillUp(callIds: readonly CallId[]): Promise<readonly CallId[]>;
};

const unanswered = 'ended_at is null and answered_at is null and owner_id is not null';

// The first two conditions let the planner use the index of open calls. A call that waits for a
// rule has no owner. A sip: target may spell a number in another way than `calleeNumber` reads it,
// so the caller looks at each of them.
const ringingStatement = `
select call_id, owner_id, request -> 'target' as target from calls
where end_published_at is null and not_before is null and ${unanswered} and account_id = $1
  and ($2::text is null or ${calleeNumber.text} = $2 or request #>> '{target,kind}' = 'sip')`;

const suppressedStatement = `
select address from suppressions
where account_id = $1 and address = any($2::text[]) and ${inForce.text}`;

// A settled call's far end is gone. While NATS is away no call is settled, but the legs of an ended
// call are still deleted when they are off the wire. The delay is for an INVITE that the engine has
// not confirmed: its leg is stored only then.
const stillUpStatement = `
select call_id from calls
where call_id = any($1::text[]) and end_published_at is null
  and (${unanswered}
    or (ended_at is not null and (ended_at > clock_timestamp() - interval '2 seconds'
      or exists (select from call_legs l where l.call_id = calls.call_id))))`;

type RingingRow = {
  readonly call_id: CallId;
  readonly owner_id: string;
  readonly target: DialTarget;
};

export function createSuppressedCalls(pool: Pick<Pool, 'query'>): SuppressedCalls {
  const suppressedAmong = async (accountId: string, addresses: readonly string[]) => {
    const { rows } = await pool.query<{ address: string }>(suppressedStatement, [
      ...[accountId, addresses],
    ]);
    return new Set(rows.map(({ address }) => address));
  };
  return {
    async release(accountId, address) {
      const number = address === undefined ? undefined : digitsOf(address);
      if (number !== '') await releaseSuppressed(pool, accountId, number);
    },
    async ringing(accountId, address) {
      const digits = address === undefined ? null : digitsOf(address);
      const { rows } = await pool.query<RingingRow>(ringingStatement, [accountId, digits]);
      const found = rows.flatMap(({ call_id: callId, owner_id: ownerId, target }) => {
        const reached = suppressedAddressOf(target);
        return reached === undefined ? [] : [{ callId, ownerId, reached }];
      });
      const addresses = [...new Set(found.map(({ reached }) => reached))];
      if (addresses.length === 0) return [];
      const suppressed =
        address === undefined ? await suppressedAmong(accountId, addresses) : new Set([address]);
      return found.flatMap(({ reached, ...call }) => (suppressed.has(reached) ? [call] : []));
    },
    async stillUp(callIds) {
      const { rows } = await pool.query<{ call_id: CallId }>(stillUpStatement, [callIds]);
      return rows.map(({ call_id: callId }) => callId);
    },
  };
}

/** Returns the digits of a number, or an empty text for a `sip:` URI. */
function digitsOf(address: string): string {
  return address.startsWith('+') ? address.slice(1) : '';
}
