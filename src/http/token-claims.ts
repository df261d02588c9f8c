// Checks the claims of a token after its signature was verified. The error names the wrong claim.

import { errors, type JWTPayload } from 'jose';

/**
 * The clocks of dialers and gateways differ. An operator should notice a difference of more than
 * 30 s.
 */
export const clockToleranceS = 30;

export type ClaimRules = {
  /** Accepted values of `aud`, if a token has this claim (RFC 7519 section 4.1.3). */
  readonly audiences: readonly string[];
  /** Maximum lifetime of a token in seconds. Undefined if the token alone decides. */
  readonly maxTtlS: number | undefined;
  readonly nowS: number;
};

/**
 * Checks what jose does not check. jose has already verified that `iat` and `exp` are numbers.
 *
 * @returns the message about the wrong claim, or undefined if all are right
 */
export function wrongClaim(
  { iat, exp = Number.NaN, aud }: JWTPayload,
  { audiences, maxTtlS, nowS }: ClaimRules,
): string | undefined {
  // JSON has no infinity, but JSON.parse reads 1e999 as Infinity.
  if (!Number.isFinite(exp)) return notValid('exp');
  if (iat !== undefined && !Number.isFinite(iat)) return notValid('iat');
  if (iat !== undefined && iat > nowS + clockToleranceS) {
    return 'The claim `iat` is in the future.';
  }
  // A token without `iat` must expire within the maximum lifetime from now, give or take the
  // clocks.
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
 * Describes the error of a claim that jose checked after it had verified the signature.
 *
 * @returns undefined for any other error: the signature is not verified then
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
