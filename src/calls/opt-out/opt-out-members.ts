// The field of a dial-out request that names the key with which the person opts out. The sound that
// follows is an announcement (`src/calls/announcements`).

import { z } from 'zod';
import type { MemberError } from '../contract/schema.ts';
import { suppressedAddressOf } from '../rules/suppression.ts';
import type { DialTarget } from '../target/dial-target.ts';

export const optOutMembers = {
  optOutKey: z
    .string()
    .regex(/^[0-9*#]$/, 'must be one of 0-9 * #')
    .exactOptional()
    .describe(
      'the key with which the person asks not to be called any more. It suppresses the target, plays `optOutSound` and ends the call. It has no effect while an agent is connected',
    ),
};

/** Checks that a suppression can name the target, since the key promises one. */
export function optOutErrors(wanted: {
  readonly optOutKey?: string;
  readonly target: DialTarget;
}): readonly MemberError[] {
  if (wanted.optOutKey === undefined) return [];
  if (suppressedAddressOf(wanted.target) !== undefined) return [];
  return [{ path: 'optOutKey', message: 'needs a target that is valid without a phone-context' }];
}
