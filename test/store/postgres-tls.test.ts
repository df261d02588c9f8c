// TLS between the gateway and PostgreSQL, with certificates that openssl makes for the test.

import { chown, copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { databaseCheck } from '../../src/checks/database.ts';
import { loadConfig } from '../../src/config.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { openDatabase } from '../../src/store/database.ts';
import { addressOptions } from '../../src/store/postgres/postgres-address.ts';
import { type Certificate, createCa, type TestCa } from '../support/certificates.ts';
import { eventually } from '../support/eventually.ts';
import { freeUdpPort } from '../support/free-port.ts';
import { type PostgresServer, postgresUser, startPostgres } from '../support/postgres-server.ts';

type Parameters = Readonly<Record<string, string>>;

let folder: string;
let [ca, otherCa]: TestCa[] = [];
let client: Certificate;
let strangers: Certificate;
let port: number;
let plainPort: number;
const servers: PostgresServer[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'offhook-test-tls-'));
  [ca, otherCa] = [await createCa(folder, 'ca'), await createCa(folder, 'other-ca')];
  // PostgreSQL takes the user from the certificate's common name.
  client = await ca.issue('offhook');
  strangers = await otherCa.issue('offhook');
  [port, plainPort] = [await freeUdpPort(), await freeUdpPort()];
  servers.push(await startTlsServer(ca, port), await startPostgres({ port: plainPort }));
});

afterAll(async () => {
  for (const server of servers) await server.stop();
  await rm(folder, { recursive: true, force: true });
});

async function startTlsServer(issuer: TestCa, listenPort: number): Promise<PostgresServer> {
  const { cert, key } = await issuer.issue('localhost');
  const user = await postgresUser();
  if (user !== undefined) {
    for (const path of [folder, cert, key]) await chown(path, user.uid, user.gid);
  }
  const server = await startPostgres({
    port: listenPort,
    settings: [
      'ssl=on',
      `ssl_cert_file=${cert}`,
      `ssl_key_file=${key}`,
      `ssl_ca_file=${issuer.ca}`,
    ],
    rules: ['local all all trust', 'hostssl all offhook all cert', 'hostssl all all all trust'],
  });
  const createRole = async (): Promise<boolean> => {
    const admin = new Client({ connectionString: server.url });
    try {
      await admin.connect();
      await admin.query('create role offhook login superuser');
      return true;
    } catch {
      // The server is still starting.
      return false;
    } finally {
      await admin.end();
    }
  };
  await eventually(createRole, 'the role is created');
  return server;
}

function urlOf(parameters: Parameters, { user = 'postgres', host = 'localhost', at = port } = {}) {
  return `postgres://${user}@${host}:${at}/postgres?${new URLSearchParams(parameters).toString()}`;
}

/** Opens a database there, and returns the version of TLS. */
async function tlsAt(databaseUrl: string): Promise<string | null> {
  const database = await openDatabase({ databaseUrl, dataDir: folder, logger: silentLogger });
  try {
    const { rows } = await database.pool.query<{ version: string | null }>(
      'select version from pg_stat_ssl where pid = pg_backend_pid()',
    );
    return rows[0]?.version ?? null;
  } finally {
    await database.close();
  }
}

describe('a gateway', () => {
  test.each(['verify-full', 'verify-ca', 'require'])(
    'with sslmode=%s accepts the right authority and name',
    async (sslmode) => {
      expect(await tlsAt(urlOf({ sslmode, sslrootcert: ca?.ca ?? '' }))).toMatch(/^TLSv1\.[23]$/);
    },
  );

  test('shows its own certificate', async () => {
    const parameters = { sslmode: 'verify-full', sslrootcert: ca?.ca ?? '' };
    const own = { sslcert: client.cert, sslkey: client.key };

    expect(await tlsAt(urlOf({ ...parameters, ...own }, { user: 'offhook' }))).toMatch(/^TLSv1/);
    await expect(tlsAt(urlOf(parameters, { user: 'offhook' }))).rejects.toMatchObject({
      cause: { message: 'connection requires a valid client certificate' },
    });
    const wrong = { sslcert: strangers.cert, sslkey: strangers.key };
    await expect(tlsAt(urlOf({ ...parameters, ...wrong }, { user: 'offhook' }))).rejects.toThrow(
      'DATABASE_URL: the server refused the TLS connection, perhaps because it does not trust sslcert',
    );
  });

  test('checks nothing with sslmode=no-verify, but uses TLS', async () => {
    const url = urlOf({ sslmode: 'no-verify' }, { host: '127.0.0.1' });
    expect(await tlsAt(url)).toMatch(/^TLSv1/);
  });

  const anotherName = 'the certificate of the server is for another name than the one in the URL';
  const untrusted =
    /^DATABASE_URL: the certificate of the server is not signed by an authority in sslrootcert/;

  test.each(['verify-full', 'verify-ca', 'require'])(
    'with sslmode=%s refuses another authority, another name, and a server without TLS at once',
    async (sslmode) => {
      const right = { sslmode, sslrootcert: ca?.ca ?? '' };

      await expect(tlsAt(urlOf({ sslmode, sslrootcert: otherCa?.ca ?? '' }))).rejects.toThrow(
        untrusted,
      );
      await expect(tlsAt(urlOf({ sslmode }))).rejects.toThrow(untrusted);
      await expect(tlsAt(urlOf({ sslmode, sslrootcert: 'system' }))).rejects.toThrow(untrusted);
      await expect(tlsAt(urlOf(right, { host: '127.0.0.1' }))).rejects.toThrow(anotherName);
      await expect(tlsAt(urlOf(right, { at: plainPort }))).rejects.toThrow(
        'DATABASE_URL: the URL asks for TLS, but the server does not offer it',
      );
    },
  );

  test('does not connect without TLS to a server that requires it', async () => {
    await expect(tlsAt(urlOf({ sslmode: 'disable' }))).rejects.toMatchObject({
      cause: { message: expect.stringContaining('no encryption') as string },
    });
    expect(await tlsAt(urlOf({ sslmode: 'disable' }, { at: plainPort }))).toBeNull();
  });

  test('names the parameter of a missing file', async () => {
    const missing = { sslmode: 'verify-full', sslrootcert: join(folder, 'missing.pem') };

    await expect(tlsAt(urlOf(missing))).rejects.toThrow(
      `DATABASE_URL: sslrootcert: ${join(folder, 'missing.pem')} cannot be read`,
    );
  });

  test('uses a replaced file for its next connection, and the last one while it is missing', async () => {
    const path = join(folder, 'replaced.pem');
    await copyFile(ca?.ca ?? '', path);
    const options = addressOptions(urlOf({ sslmode: 'verify-full', sslrootcert: path }));
    const connects = async () => {
      const connection = new Client(options);
      connection.on('error', () => undefined);
      onTestFinished(() => connection.end().catch(() => undefined));
      return await connection.connect().then(
        () => true,
        () => false,
      );
    };

    expect(await connects()).toBe(true);
    await rm(path);
    expect(await connects()).toBe(true);
    await copyFile(otherCa?.ca ?? '', path);
    expect(await connects()).toBe(false);
  });
});

test('the check before the start names the reason', async () => {
  const examined = (databaseUrl: string) =>
    databaseCheck(loadConfig({ DATABASE_URL: databaseUrl, SECRETS_KEY: 'ab'.repeat(32) })).run();

  const right = { sslmode: 'verify-full', sslrootcert: ca?.ca ?? '' };
  expect(await examined(urlOf(right))).toMatchObject({ state: 'ok' });
  expect(await examined(urlOf(right, { host: '127.0.0.1' }))).toMatchObject({
    state: 'failed',
    detail: expect.stringContaining('for another name') as string,
  });
  expect(await examined(urlOf({ ...right, sslrootcert: '/missing.pem' }))).toMatchObject({
    state: 'failed',
    detail: 'DATABASE_URL: sslrootcert: /missing.pem cannot be read',
  });
});
