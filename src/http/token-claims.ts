// Checks a token's claims once its signature has been verified. The error names the claim that is
// wrong.

import { errors, type JWTPayload } from 'jose';

/**
 * Dialers' and gateways' clocks always differ a little. If they differ by more than 30 s, the
 * operator should notice.
 */
export const clockToleranceS = 30;

export type ClaimRules = {
  /** Accepted values of `aud`, if the token has this claim (RFC 7519 section 4.1.3). */
  readonly audiences: readonly string[];
  /**
   * The maximum lifetime of a token in seconds. Undefined if only the token itself limits its
   * lifetime.
   */
  readonly maxTtlS: number | undefined;
  readonly nowS: number;
};

/**
 * Checks the rules that jose doesn't. By now, jose has verified that `iat` and `exp` are numbers.
 *
 * @returns the message about the wrong claim, or undefined if all claims are right
 */
export function wrongClaim(
  { iat, exp = Number.NaN, aud }: JWTPayload,
  { audiences, maxTtlS, nowS }: ClaimRules,
): string | undefined {
  // JSON has no infinity, but JSON.parse turns 1e999 into Infinity.
  if (!Number.isFinite(exp)) return notValid('exp');
  if (iat !== undefined && !Number.isFinite(iat)) return notValid('iat');
  if (iat !== undefined && iat > nowS + clockToleranceS) {
    return 'The claim `iat` is in the future.';
  }
  // If there's no `iat`, the token must expire within the maximum lifetime from now, give or take
  // the clock tolerance.
  const livesS = iat === undefined ? exp - nowS - clockToleranceS : exp - iat;
  if (maxTtlS !== undefined && livesS > maxTtlS) {
    return `The claim \`exp\` is too late: tokens of this app may live for ${maxTtlS} s from \`iat\`, or from now if they have no \`iat\`.`;
  }
  if (aud !== undefined && ![aud].flat().some((name) => audiences.includes(name))) {
    return 'The claim `aud` names another audience.';
  }
  return undefined;
}

/**
 * Describes a claim error that jose found after verifying the signature.
 *
 * @returns undefined for any other error, because the signature may not have been verified
 */
export function describeClaimError(error: unknown): string | undefined {
  if (error instanceof errors.JWTExpired) return 'The token has expired (claim `exp`).';
  if (!(error instanceof errors.JWTClaimValidationFailed)) return undefined;
  if (error.reason === 'missing') return `The token has no claim \`${error.claim}\`.`;
  if (error.claim === 'nbf' && error.reason === 'check_failed') {
    return 'The token is not valid yet (claim `nbf`).';
  }
  return notValid(error.claim);
}

function notValid(claim: string): string {
  return `The claim \`${claim}\` is not valid.`;
}
