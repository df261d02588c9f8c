// Credentials in every state that a client may have.

import { SignJWT, UnsecuredJWT } from 'jose';
import type { TestApp } from '../companion/support.ts';
import type { CredentialsHeader } from './document.ts';

export const authStates = [
  'valid',
  'none',
  'garbage',
  'other scheme',
  'expired',
  'unsigned',
  'alg none',
  'other algorithm',
  'other key',
  'other tenant',
  'without scope',
] as const;
export type AuthState = (typeof authStates)[number];

/** The states that the credentials alone reveal. */
export const badStates = authStates.slice(1, authStates.indexOf('other tenant'));

export type Callers = {
  readonly valid: TestApp;
  readonly otherTenant: TestApp;
  readonly withoutScope: TestApp;
};

/**
 * Returns the headers that carry the credentials. An API key cannot expire or be signed. For those
 * states the header carries a token instead.
 */
export async function credentials(
  state: AuthState,
  header: CredentialsHeader,
  { valid, otherTenant, withoutScope }: Callers,
): Promise<Record<string, string>> {
  switch (state) {
    case 'valid':
      return await proper(header, valid);
    case 'other tenant':
      return await proper(header, otherTenant);
    case 'without scope':
      return await proper(header, withoutScope);
    case 'none':
      return {};
    case 'garbage':
      return { [header]: 'x.y.z' };
    case 'other scheme':
      return await proper(header === 'auth' ? 'x-api-key' : 'auth', valid);
    case 'expired':
    case 'unsigned':
    case 'alg none':
    case 'other algorithm':
    case 'other key':
      return { [header]: await badToken(state, valid) };
  }
}

async function proper(header: CredentialsHeader, app: TestApp): Promise<Record<string, string>> {
  return { [header]: header === 'auth' ? await sign(app.appId, app.jwtSecret) : app.apiKey };
}

async function badToken(
  state: 'expired' | 'unsigned' | 'alg none' | 'other algorithm' | 'other key',
  { appId, jwtSecret }: TestApp,
): Promise<string> {
  switch (state) {
    case 'expired':
      return await sign(appId, jwtSecret, { expires: '-1h' });
    case 'unsigned':
      return (await sign(appId, jwtSecret)).replace(/[^.]+$/, '');
    case 'alg none':
      return new UnsecuredJWT({ appId }).setIssuedAt().setExpirationTime('1h').encode();
    case 'other algorithm':
      return await sign(appId, jwtSecret, { alg: 'HS512' });
    case 'other key':
      return await sign(appId, `not ${jwtSecret}`);
  }
}

const signed = new Map<string, Promise<string>>();

/** Signs one token of each kind for all requests, like a dialer. */
async function sign(
  appId: string,
  secret: string,
  { alg = 'HS256', expires = '1h' } = {},
): Promise<string> {
  const key = JSON.stringify([appId, secret, alg, expires]);
  const known = signed.get(key);
  if (known !== undefined) return await known;
  const token = new SignJWT({ appId })
    .setProtectedHeader({ alg })
    .setIssuedAt()
    .setExpirationTime(expires)
    .sign(new TextEncoder().encode(secret));
  signed.set(key, token);
  return await token;
}
