// What a token says of itself, once its signature is known to be the app's: the claim that is wrong is named.

import { errors, type JWTPayload } from 'jose';

/** Clocks of dialers and gateways differ; more than half a minute is a fault that an operator should see. */
export const clockToleranceS = 30;

export type ClaimRules = {
  /** What `aud` may say, where a token has one (RFC 7519 section 4.1.3). */
  readonly audiences: readonly string[];
  /** Undefined: a token may live as long as it says. */
  readonly maxTtlS: number | undefined;
  readonly nowS: number;
};

/** In words; undefined: none. Of what jose leaves open; `iat` and `exp` are numbers by now. */
export function wrongClaim(
  { iat, exp = Number.NaN, aud }: JWTPayload,
  { audiences, maxTtlS, nowS }: ClaimRules,
): string | undefined {
  // JSON has no infinity, but 1e999 is read as one.
  if (!Number.isFinite(exp)) return notValid('exp');
  if (iat !== undefined && !Number.isFinite(iat)) return notValid('iat');
  if (iat !== undefined && iat > nowS + clockToleranceS) {
    return 'The claim `iat` is in the future: the token says that it is not made yet.';
  }
  // A token that does not say when it was made must be near its end; clocks differ.
  const livesS = iat === undefined ? exp - nowS - clockToleranceS : exp - iat;
  if (maxTtlS !== undefined && livesS > maxTtlS) {
    return `The claim \`exp\` is too late: tokens of this app may live for ${maxTtlS} s from \`iat\`, or from now without it.`;
  }
  if (aud !== undefined && ![aud].flat().some((name) => audiences.includes(name))) {
    return 'The claim `aud` names another audience.';
  }
  return undefined;
}

/** The same of what jose checks, after the signature; undefined: the signature is not verified. */
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
