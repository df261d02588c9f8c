// Tests how the gateway signs in to real nats-servers with TLS, client certificates, nkeys and
// JWTs, and what it says about each mistake.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nkeys } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectEvents } from '../../src/events/connection.ts';
import { checkAccess, type NatsAccess, withoutCredentials } from '../../src/events/nats-access.ts';
import { NatsUnavailable } from '../../src/events/nats-away.ts';
import { silentLogger as logger } from '../../src/lib/logger.ts';
import { type Certificate, createCa, type TestCa } from '../support/certificates.ts';
import { type ConfiguredNats, startConfiguredNats } from '../support/configured-nats.ts';
import { eventually } from '../support/eventually.ts';
import { freeUdpPort } from '../support/free-port.ts';
import { createNatsOperator } from '../support/nats-operator.ts';

let folder: string;
let ca: TestCa;
let client: Certificate;
let stranger: Certificate;
let strangerCa: string;
const servers: ConfiguredNats[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'offhook-nats-access-'));
  ca = await createCa(folder, 'our-ca');
  client = await ca.issue('gateway');
  const otherCa = await createCa(folder, 'other-ca');
  strangerCa = otherCa.ca;
  stranger = await otherCa.issue('stranger');
}, 60_000);
afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
  await rm(folder, { recursive: true, force: true });
});

async function start(name: string, lines: string): Promise<number> {
  const server = await startConfiguredNats(folder, name, lines);
  servers.push(server);
  return server.port;
}

/** Publishes to a new stream, which needs every right that the gateway needs at first. */
async function use(url: string, access: NatsAccess): Promise<'used'> {
  const connection = await connectEvents({
    ...{ url, access, prefix: 'test', name: 'test', logger },
    ...{ firstConnectTimeoutMs: 0, connectTimeoutMs: 1_000 },
  });
  try {
    await connection.manager.streams.add({ name: 'test', subjects: ['test.>'] });
    expect(await connection.put('test.one', '{}')).toBeGreaterThan(0);
  } finally {
    await connection.close();
  }
  return 'used';
}

/** Returns the reason that a check or a failed start shows. */
async function refusal(url: string, access: NatsAccess): Promise<string | undefined> {
  const error: unknown = await use(url, access).catch((thrown: unknown) => thrown);
  if (!(error instanceof NatsUnavailable)) throw new Error('it was used', { cause: error });
  expect(error.message).toContain(error.refusal ?? 'cannot connect');
  return error.refusal;
}

function tls({ cert, key }: Certificate, more = ''): string {
  return `tls { cert_file: "${cert}", key_file: "${key}"${more} }`;
}

describe('TLS', () => {
  let port: number;
  let byName: number;

  beforeAll(async () => {
    port = await start('by-address', tls(await ca.issue('address', 'IP:127.0.0.1')));
    byName = await start('by-name', tls(await ca.issue('name', 'DNS:localhost')));
  }, 60_000);

  test('accepts a server whose certificate names its address or its host name', async () => {
    expect(await use(`tls://127.0.0.1:${port}`, { ca: ca.ca })).toBe('used');
    expect(await use(`tls://localhost:${byName}`, { ca: ca.ca })).toBe('used');
    // NATS_CA alone requires TLS too.
    expect(await use(`nats://localhost:${byName}`, { ca: ca.ca })).toBe('used');
  });

  test('refuses a certificate for another host or address', async () => {
    const wrongName = 'NATS_URL: the server’s certificate is for another host';
    expect(await refusal(`tls://localhost:${port}`, { ca: ca.ca })).toBe(wrongName);
    // Node would compare this certificate with `localhost`, although the URL says 127.0.0.1.
    expect(await refusal(`tls://127.0.0.1:${byName}`, { ca: ca.ca })).toBe(wrongName);
  });

  test('refuses a certificate from another CA', async () => {
    expect(await refusal(`tls://127.0.0.1:${port}`, { ca: strangerCa })).toBe(
      'NATS_CA: this CA did not issue the server’s certificate',
    );
    expect(await refusal(`tls://127.0.0.1:${port}`, {})).toBe(
      'NATS_CA is not set, and the system’s CAs did not issue the server’s certificate',
    );
  });

  test('is never left out', async () => {
    const plain = await start('plain', '');
    const problem = 'NATS_URL: the server does not offer TLS';
    expect(await refusal(`tls://127.0.0.1:${plain}`, {})).toBe(problem);
    expect(await refusal(`nats://127.0.0.1:${plain}`, { ca: ca.ca })).toBe(problem);
  });

  test('presents the client certificate that the server asks for', async () => {
    const server = await ca.issue('verifying', 'IP:127.0.0.1');
    const verifying = await start('verify', tls(server, `, ca_file: "${ca.ca}", verify: true`));
    const url = `tls://127.0.0.1:${verifying}`;

    expect(await use(url, { ca: ca.ca, ...client })).toBe('used');
    expect(await refusal(url, { ca: ca.ca })).toBe(
      'NATS_CERT is not set, and the server requires a client certificate',
    );
    expect(await refusal(url, { ca: ca.ca, ...stranger })).toBe(
      'NATS_CERT: the server refuses the client certificate',
    );
  });
});

describe('a server that takes the user from the client certificate', () => {
  test('accepts the certificate without a password', async () => {
    const server = await ca.issue('mapping', 'IP:127.0.0.1');
    const map = tls(server, `, ca_file: "${ca.ca}", verify_and_map: true`);
    const users = 'authorization { users: [{ user: "CN=gateway" }] }';
    const url = `tls://127.0.0.1:${await start('map', `${map}\n${users}`)}`;

    expect(await use(url, { ca: ca.ca, ...client })).toBe('used');
    expect(await refusal(url, { ca: ca.ca, ...(await ca.issue('unknown')) })).toMatch(
      /^NATS_URL or NATS_CERT: the server refused it/,
    );
  });
});

describe('nkeys', () => {
  test('sign in the user that the server knows, and no other', async () => {
    const user = nkeys.createUser();
    const port = await start(
      'nkeys',
      `authorization { users: [{ nkey: ${user.getPublicKey()} }] }`,
    );
    const seedOf = (pair: typeof user): string => Buffer.from(pair.getSeed()).toString();

    expect(await use(`nats://127.0.0.1:${port}`, { nkey: seedOf(user) })).toBe('used');
    expect(await refusal(`nats://127.0.0.1:${port}`, { nkey: seedOf(nkeys.createUser()) })).toMatch(
      /^NATS_NKEY: the server refused it \(.*uthorization/,
    );
    expect(await refusal(`nats://127.0.0.1:${port}`, {})).toMatch(/^NATS_URL: the server refused/);
  });
});

describe('credentials files', () => {
  test('sign in a user whose JWT comes from the server’s operator, and no other', async () => {
    const operator = createNatsOperator();
    const port = await start('jwt', operator.configuration);
    const url = `nats://127.0.0.1:${port}`;
    const file = async (name: string, text: string): Promise<NatsAccess> => {
      const creds = join(folder, name);
      await writeFile(creds, text);
      return { creds };
    };

    expect(await use(url, await file('good.creds', operator.credentials()))).toBe('used');
    const refused = /^NATS_CREDS: the server refused it/;
    const strange = createNatsOperator().credentials();
    expect(await refusal(url, await file('strange.creds', strange))).toMatch(refused);
    const expired = operator.credentials(new Date(Date.now() - 60_000));
    expect(await refusal(url, await file('expired.creds', expired))).toMatch(refused);
  });

  test('are read again for a new connection', async () => {
    const operator = createNatsOperator();
    const monitor = await freeUdpPort();
    const port = await start('renewed', `${operator.configuration}\nhttp: "127.0.0.1:${monitor}"`);
    const creds = join(folder, 'renewed.creds');
    await writeFile(creds, operator.credentials());
    const connection = await connectEvents({
      ...{ url: `nats://127.0.0.1:${port}`, access: { creds }, prefix: 'test', name: 'test' },
      logger,
    });
    type Session = { readonly cid: number; readonly authorized_user?: string };
    const session = async (): Promise<Session> => {
      const answer = await fetch(`http://127.0.0.1:${monitor}/connz?auth=true`);
      const { connections } = (await answer.json()) as { connections: readonly Session[] };
      return connections.at(-1) ?? { cid: 0 };
    };
    const nextSession = async (): Promise<Session> => {
      const { cid } = await session();
      await connection.nats.reconnect();
      let next: Session | undefined;
      await eventually(async () => {
        next = await session();
        return next.cid > cid && next.authorized_user !== undefined;
      }, 'a new connection');
      return next ?? { cid };
    };
    const first = await session();

    await writeFile(creds, operator.credentials());
    const renewed = await nextSession();
    // While the file is broken, the last good credentials still work.
    await writeFile(creds, 'half a file');
    const last = await nextSession();

    expect(first.authorized_user).toMatch(/^U/);
    expect(renewed.authorized_user).not.toBe(first.authorized_user);
    expect(last.authorized_user).toBe(renewed.authorized_user);
    await connection.close();
  });
});

describe('files and keys that cannot work', () => {
  const missing = '/nowhere/file';

  test.each<[string, NatsAccess]>([
    [`NATS_CREDS: ${missing} cannot be read`, { creds: missing }],
    [`NATS_CA: ${missing} cannot be read`, { ca: missing }],
    [`NATS_CERT: ${missing} cannot be read`, { cert: missing, key: missing }],
    ['NATS_NKEY: is not a valid seed of a user’s nkey (SU…)', { nkey: `SU${'A'.repeat(56)}` }],
  ])('%s', (message, access) => {
    expect(() => checkAccess(access)).toThrow(message);
  });

  test('are named with their variable and path', async () => {
    const noise = join(folder, 'noise');
    await writeFile(noise, 'SECRET-NOISE');

    const messageOf = (access: NatsAccess): string => {
      try {
        checkAccess(access);
        return 'fine';
      } catch (error) {
        return String(error);
      }
    };
    expect(messageOf({ creds: noise })).toMatch(`NATS_CREDS: ${noise} is not a credentials file`);
    expect(messageOf({ ca: noise })).toMatch(`NATS_CA: ${noise} is not a PEM file`);
    expect(messageOf({ ...client, cert: noise })).toMatch(`NATS_CERT: ${noise} is not a PEM file`);
    expect(messageOf({ ...client, key: noise })).toMatch(`NATS_KEY: ${noise} is not a PEM file`);
    expect(messageOf({ ...client, key: stranger.key })).toMatch(
      `NATS_KEY: ${stranger.key} is not the key of the certificate NATS_CERT`,
    );
    for (const access of [{ creds: noise }, { ca: noise }])
      expect(messageOf(access)).not.toContain('SECRET-NOISE');
  });
});

test('addresses are shown without credentials, for every server of the list', () => {
  expect(withoutCredentials('nats://a:p%40w@one:4222, tls://token@two,nats://u:p@ss@three')).toBe(
    'nats://one:4222,tls://two,nats://three',
  );
});
