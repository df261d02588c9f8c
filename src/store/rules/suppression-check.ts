// Asks before an INVITE whether its target has been suppressed. If the database doesn't respond in
// time, the answer is `unknown`, and the INVITE doesn't leave: a call that fails can be repeated,
// but a call to a person who asked not to be called can't be taken back.

import { setTimeout as pause } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { Reachability, SuppressionCheck } from '../../calls/ports.ts';
import { suppressedAddressOf } from '../../calls/rules/suppression.ts';
import type { Logger } from '../../lib/logger.ts';
import { within } from '../../lib/within.ts';
import { inForce } from './suppressions.ts';

/** As long as most fail-overs of a database take, and well below people's ring time-outs. */
const defaultTimeoutMs = 5_000;
const retryMs = 250;

const statement = {
  name: 'is suppressed',
  text: `select from suppressions where account_id = $1 and address = $2 and ${inForce.text}`,
} as const;

export function createSuppressionCheck(
  pool: Pick<Pool, 'query'>,
  logger: Logger,
  timeoutMs = defaultTimeoutMs,
): SuppressionCheck {
  const isSuppressed = async (accountId: string, address: string): Promise<boolean> =>
    ((await pool.query({ ...statement, values: [accountId, address] })).rowCount ?? 0) > 0;

  async function ask(accountId: string, address: string, isWanted: () => boolean) {
    for (let tries = 1; isWanted(); tries += 1) {
      try {
        return (await isSuppressed(accountId, address)) ? 'suppressed' : 'free';
      } catch (error) {
        if (tries === 1) logger.warn({ err: error }, 'a suppression could not be checked');
      }
      await pause(retryMs, undefined, { ref: false });
    }
    return 'unknown';
  }

  return {
    async reach(accountId, target): Promise<Reachability> {
      const address = suppressedAddressOf(target);
      if (address === undefined) return 'free';
      let isWanted = true;
      const answer = await within(
        ask(accountId, address, () => isWanted),
        timeoutMs,
      );
      isWanted = false;
      return answer ?? 'unknown';
    },
  };
}
