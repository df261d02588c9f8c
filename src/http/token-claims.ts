// Checks the claims of a token after its signature was verified. The error names the wrong claim.

import { errors, type JWTPayload } from 'jose';

/**
 * The clocks of dialers and gateways differ. A difference of over 30 s is a fault that an operator
 * should see.
 */
export const clockToleranceS = 30;

export type ClaimRules = {
  /** Accepted values of `aud`, if a token has this claim (RFC 7519 section 4.1.3). */
  readonly audiences: readonly string[];
  /** Longest life of a token, in seconds. Undefined if tokens may live as long as they say. */
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
  // A token without `iat` must expire within the longest life from now. Clocks may differ.
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
 * Words the errors of the claims that jose checks after the signature.
 *
 * @returns undefined if the signature is not verified
 */
export function claimRefusedBy(error: unknown): string | undefined {
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
