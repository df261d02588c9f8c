// Makes what `nsc` makes for a nats-server with JWTs: an operator, a system account, an account
// with JetStream, and users with their credentials files.

import { randomUUID } from 'node:crypto';
import { nkeys } from '@nats-io/transport-node';

type KeyPair = ReturnType<typeof nkeys.createUser>;

export type NatsOperator = {
  /** The lines of the server's configuration. */
  readonly configuration: string;
  /** Returns the text of a new user's credentials file. */
  credentials(expiresAt?: Date): string;
};

export function createNatsOperator(): NatsOperator {
  const operator = nkeys.createOperator();
  const [system, account] = [nkeys.createAccount(), nkeys.createAccount()];
  const limits = { subs: -1, data: -1, payload: -1, imports: -1, exports: -1, wildcards: true };
  const connections = { conn: -1, leaf: -1 };
  const storage = { mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 };
  const accountJwt = (of: KeyPair, more: object): string =>
    sign(operator, of, {
      type: 'account',
      limits: { ...limits, ...connections, ...more },
    });
  return {
    configuration: [
      `operator: ${sign(operator, operator, { type: 'operator', system_account: system.getPublicKey() })}`,
      'resolver: MEMORY',
      'resolver_preload: {',
      `  ${system.getPublicKey()}: ${accountJwt(system, {})}`,
      `  ${account.getPublicKey()}: ${accountJwt(account, storage)}`,
      '}',
    ].join('\n'),
    credentials(expiresAt) {
      const user = nkeys.createUser();
      const claims = { type: 'user', subs: -1, data: -1, payload: -1, pub: {}, sub: {} };
      return credentialsFile(sign(account, user, claims, expiresAt), user);
    },
  };
}

function sign(issuer: KeyPair, subject: KeyPair, nats: object, expiresAt?: Date): string {
  const encode = (value: object): string =>
    Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = {
    jti: randomUUID(),
    iat: Math.floor(Date.now() / 1_000),
    ...(expiresAt === undefined ? {} : { exp: Math.floor(expiresAt.getTime() / 1_000) }),
    iss: issuer.getPublicKey(),
    sub: subject.getPublicKey(),
    nats: { ...nats, version: 2 },
  };
  const text = `${encode({ typ: 'JWT', alg: 'ed25519-nkey' })}.${encode(claims)}`;
  return `${text}.${Buffer.from(issuer.sign(Buffer.from(text))).toString('base64url')}`;
}

function credentialsFile(jwt: string, user: KeyPair): string {
  return [
    '-----BEGIN NATS USER JWT-----',
    jwt,
    '------END NATS USER JWT------',
    '',
    '-----BEGIN USER NKEY SEED-----',
    Buffer.from(user.getSeed()).toString(),
    '------END USER NKEY SEED------',
    '',
  ].join('\n');
}
