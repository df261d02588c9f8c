// Issues tokens for the command line and tests. Dialers sign their own tokens.

import { SignJWT } from 'jose';
import type { App } from '../store/apps/app-directory.ts';
import { isPublicKeyAlgorithm } from '../store/apps/jwt-keys.ts';

/**
 * A token that is valid for longer than a month is as good as a password. If an app needs such a
 * token, it has to sign the token itself.
 */
export const maxIssuedTokenTtlS = 31 * 86_400;

export type TokenSigner = Pick<App, 'appId' | 'jwtAlgorithm'> & { readonly jwtSecret: string };

/** @returns undefined if the app signs with its own private key, which we don't have */
export function signerOf({ appId, jwtAlgorithm, jwtKeys }: App): TokenSigner | undefined {
  const [jwtSecret] = jwtKeys;
  return jwtSecret === undefined || isPublicKeyAlgorithm(jwtAlgorithm)
    ? undefined
    : { appId, jwtAlgorithm, jwtSecret };
}

export async function issueToken(app: TokenSigner, ttlS: number): Promise<string> {
  const nowS = Math.floor(Date.now() / 1_000);
  return await new SignJWT({ appId: app.appId })
    .setProtectedHeader({ alg: app.jwtAlgorithm, typ: 'JWT' })
    .setIssuedAt(nowS)
    .setExpirationTime(nowS + ttlS)
    .sign(new TextEncoder().encode(app.jwtSecret));
}
