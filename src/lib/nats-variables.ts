// The variables that say how to sign in to NATS and how to check its servers, and which of them
// contradict each other.

import { z } from 'zod';

export const natsNkey = z
  .string()
  .trim()
  .regex(/^SU[A-Z2-7]{56}$/, 'must be the seed of a user’s nkey: SU and 56 more characters');

type Variables = {
  readonly NATS_URL?: string | undefined;
  readonly NATS_CREDS?: string | undefined;
  readonly NATS_NKEY?: string | undefined;
  readonly NATS_CA?: string | undefined;
  readonly NATS_CERT?: string | undefined;
  readonly NATS_KEY?: string | undefined;
};

/**
 * All but the nkey are paths.
 *
 * @throws Error that names the variables that contradict each other
 */
export function natsAccess(variables: Variables) {
  const problem = problemOf(variables);
  if (problem !== undefined) throw new Error(`Bad configuration:\n  ${problem}`);
  const { NATS_CREDS: creds, NATS_NKEY: nkey } = variables;
  const { NATS_CA: ca, NATS_CERT: cert, NATS_KEY: key } = variables;
  return { creds, nkey, ca, cert, key };
}

const needUrl = ['NATS_CREDS', 'NATS_NKEY', 'NATS_CA', 'NATS_CERT', 'NATS_KEY'] as const;

function problemOf(variables: Variables): string | undefined {
  const { NATS_URL: url, NATS_CREDS: creds, NATS_NKEY: nkey } = variables;
  const { NATS_CERT: cert, NATS_KEY: key } = variables;
  const withoutUrl = needUrl.find((name) => variables[name] !== undefined);
  if (url === undefined) return withoutUrl && `${withoutUrl}: needs NATS_URL`;
  if (cert !== undefined && key === undefined) return 'NATS_CERT: needs NATS_KEY';
  if (key !== undefined && cert === undefined) return 'NATS_KEY: needs NATS_CERT';
  if (creds !== undefined && nkey !== undefined) return 'NATS_CREDS: contradicts NATS_NKEY';
  if ((creds ?? nkey) === undefined || !hasCredentials(url)) return undefined;
  const signIn = creds === undefined ? 'NATS_NKEY' : 'NATS_CREDS';
  return `${signIn}: contradicts the user, password or token in NATS_URL`;
}

function hasCredentials(urls: string): boolean {
  return urls.split(',').some((part) => {
    const { username, password } = new URL(part.trim());
    return username !== '' || password !== '';
  });
}
