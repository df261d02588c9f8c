// Rewrites a dial-out request's numbers that have no `+` before anything else looks at them, so a
// repeated request equals the first one even if it writes its numbers differently.

import { z } from 'zod';
import type { DialoutRemarks } from '../../calls/dialout-ports.ts';
import { uriOfTarget } from '../../calls/target/dial-target.ts';
import {
  type NumberReading,
  numberReadingMembers,
  readingFor,
} from '../../calls/target/number-reading.ts';
import { isBareNumber, parseTarget } from '../../calls/target/parse-target.ts';
import type { MemberError } from '../../http/problem.ts';

type Members = Readonly<Record<string, unknown>>;

export type GlobalNumbers = {
  readonly members: Members;
  readonly errors: readonly MemberError[];
  /** The rewritten numbers, which the response contains. */
  readonly dialled: Pick<DialoutRemarks, 'target' | 'bridge'>;
};

const ownReading = z.object(numberReadingMembers);

export function withGlobalNumbers(members: Members, app: NumberReading): GlobalNumbers {
  const own = ownReading.safeParse(members);
  const reading = readingFor(own.data ?? {}, app);
  const errors: MemberError[] = [];
  const uriOf = (text: unknown, path: string): string | undefined => {
    if (typeof text !== 'string' || !isBareNumber(text)) return undefined;
    const result = parseTarget(text, reading);
    if (result.ok) return uriOfTarget(result.target);
    errors.push({ path, message: result.message });
    return undefined;
  };
  const bridge = isObject(members['bridge']) ? members['bridge'] : {};
  const target = uriOf(members['target'], 'target');
  const to = uriOf(bridge['to'], 'bridge.to');
  return {
    members: {
      ...members,
      ...(target === undefined ? {} : { target }),
      ...(to === undefined ? {} : { bridge: { ...bridge, to } }),
    },
    errors,
    dialled: {
      ...(target === undefined ? {} : { target }),
      ...(to === undefined ? {} : { bridge: { to } }),
    },
  };
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null;
}
