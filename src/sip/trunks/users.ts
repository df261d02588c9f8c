// Writes the callee's and the caller's user part for a trunk: rewrite rules, number format, and the
// parameters of telephone numbers (RFC 3966).

import type { DialTarget } from '../../calls/call-types.ts';
import { rewrite } from './rewrite.ts';
import type { Trunk } from './trunks.ts';

/** A target that is a telephone number. */
export type NumberTarget = Exclude<DialTarget, { kind: 'sip' }>;

export type CalleeUser = {
  /** User part of the request URI, not escaped yet. */
  readonly user: string;
  /**
   * Parameters of the URI. `;user=phone` says that the user part has parameters of its own (RFC
   * 3261, section 19.1.6).
   */
  readonly parameters: '' | ';user=phone';
};

type TrunkUsers = Pick<Trunk, 'rewrite' | 'numberFormat' | 'numberPrefix'>;

/** @returns undefined if a rule turns the caller into something that isn't a user part */
export function callerUser(trunk: TrunkUsers, caller: string): string | undefined {
  const rewritten = rewrite(caller, trunk.rewrite?.caller);
  return rewritten.ok ? (rewritten.user ?? caller) : undefined;
}

/** @returns undefined if a rule turns the number into something that isn't a user part */
export function calleeUser(trunk: TrunkUsers, target: NumberTarget): CalleeUser | undefined {
  const rewritten = rewrite(ruledValue(target), trunk.rewrite?.number);
  if (!rewritten.ok) return undefined;
  const context =
    target.kind === 'local' && rewritten.user === undefined
      ? `;phone-context=${target.phoneContext}`
      : '';
  const extension = target.ext === undefined ? '' : `;ext=${target.ext}`;
  return {
    user: `${rewritten.user ?? formatted(trunk, target)}${extension}${context}`,
    parameters: extension === '' && context === '' ? '' : ';user=phone',
  };
}

/**
 * Returns the text that the rules for numbers see. A local number has its context with it, because
 * the same digits reach different people elsewhere.
 */
function ruledValue(target: NumberTarget): string {
  return target.kind === 'tel'
    ? `+${target.number}`
    : `${target.digits};phone-context=${target.phoneContext}`;
}

/** `numberFormat` and `numberPrefix` apply to global numbers, which a carrier's plan is about. */
function formatted(trunk: TrunkUsers, target: NumberTarget): string {
  if (target.kind === 'local') return target.digits;
  return trunk.numberPrefix + formatNumber(target.number, trunk.numberFormat);
}

function formatNumber(digits: string, format: Trunk['numberFormat']): string {
  switch (format) {
    case 'e164':
      return `+${digits}`;
    case 'digits':
      return digits;
    case 'double-zero':
      return `00${digits}`;
  }
}
