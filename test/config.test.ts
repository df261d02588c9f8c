import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadConfig, readSecrets } from '../src/config.ts';

describe('the configuration', () => {
  test('is rejected with a list of all bad variables and their expected values', () => {
    expect(() =>
      loadConfig({
        HTTP_PORT: 'abc',
        SIP_PORT: '99999',
        LOG_LEVEL: 'loud',
        PUBLIC_URL: 'offhook',
        MAX_CALL_DURATION_MS: '1000.5',
        NOTIFY_ALLOWED_NETWORKS: '10.0.0.1',
        TRUSTED_PROXIES: '10.0.0.0/8,::/0',
        TOKEN_MAX_TTL_S: '59',
        SECRETS_KEY: 'secret',
      }),
    ).toThrow(
      [
        'Bad configuration:',
        '  HTTP_PORT: must be a number',
        '  PUBLIC_URL: must be an absolute URL, e.g. https://offhook.example.com',
        '  TRUSTED_PROXIES: must not be every address',
        '  TOKEN_MAX_TTL_S: must be at least 60',
        '  SIP_PORT: must be at most 65535',
        '  MAX_CALL_DURATION_MS: must be an integer',
        '  NOTIFY_ALLOWED_NETWORKS: must be `none`, or CIDR networks separated by commas, e.g. 10.0.0.0/8',
        '  SECRETS_KEY: must be 32 bytes, as 64 hex digits or base64 (openssl rand -hex 32 makes one)',
        '  LOG_LEVEL: must be one of trace, debug, info, warn, error, fatal, silent',
      ].join('\n'),
    );
  });

  describe('DATABASE_URL', () => {
    const loaded = (databaseUrl: string) =>
      loadConfig({ DATABASE_URL: databaseUrl, SECRETS_KEY: 'ab'.repeat(32) });

    test.each([
      'postgres://offhook:secret@db-1,db-2/offhook',
      'postgres://offhook@db-1:5432,db-2:5432/offhook',
      'postgresql://db-1,db-2',
      'postgres://offhook@/offhook?host=db-1,db-2',
      'postgres://offhook@/offhook?host=db-1%2Cdb-2&port=5432,5433',
    ])('%s is rejected, because it names several hosts', (databaseUrl) => {
      expect(() => loaded(databaseUrl)).toThrow(
        'DATABASE_URL: names several hosts. Name one that always leads to the primary: a single host name, the service of Patroni or CloudNativePG, or HAProxy with a check for the primary (sip-config/haproxy-postgres.cfg)',
      );
    });

    test.each([
      'postgres://offhook:pass,word@db/offhook',
      'postgres://offhook:pass,word@db:5432/offhook?application_name=a,b&sslmode=verify-full',
      'postgres://offhook@/offhook?host=/run/postgresql',
    ])('%s names one host', (databaseUrl) => {
      expect(loaded(databaseUrl).databaseUrl).toBe(databaseUrl);
    });

    test.each([
      ['sslmode=prefer', 'sslmode must be disable, no-verify, require, verify-ca or verify-full'],
      ['uselibpqcompat=true&sslmode=require', 'uselibpqcompat has no effect: see sslmode'],
      ['sslcert=client.pem', 'sslcert and sslkey need each other'],
    ])('is rejected with %s', (parameters, message) => {
      expect(() => loaded(`postgres://db/offhook?${parameters}`)).toThrow(
        `DATABASE_URL: ${message}`,
      );
    });
  });

  test('accepts every pino level as LOG_LEVEL', () => {
    for (const level of [...Object.keys(pino.levels.values), 'silent']) {
      expect(loadConfig({ LOG_LEVEL: level }).logLevel).toBe(level);
    }
  });

  test('rejects STT_STRICT together with a default for unknown speech-to-text providers', () => {
    expect(() => loadConfig({ STT_STRICT: 'true', STT_DEFAULT_PROVIDER: 'our-engine' })).toThrow(
      'STT_STRICT: contradicts STT_DEFAULT_PROVIDER',
    );
  });

  test('trusts only the proxies that are named', () => {
    expect(loadConfig({}).http.trustedProxies).toEqual([]);
    expect(loadConfig({ TRUSTED_PROXIES: '127.0.0.1/32, ::1/128' }).http.trustedProxies).toEqual([
      '127.0.0.1/32',
      '::1/128',
    ]);
  });

  test('treats an empty variable as not set', () => {
    expect(loadConfig({ HTTP_PORT: '' }).http.port).toBe(3000);
    expect(loadConfig({ NOTIFY_ALLOWED_NETWORKS: '' }).notifier.allowedNetworks).toBeUndefined();
  });

  test('`none` allows no network and cannot be combined with networks', () => {
    const { notifier, sip } = loadConfig({
      NOTIFY_ALLOWED_NETWORKS: 'none',
      SIP_ALLOWED_NETWORKS: ' none ',
    });

    expect([notifier.allowedNetworks, sip.allowedNetworks]).toEqual([[], []]);
    expect(() => loadConfig({ SIP_ALLOWED_NETWORKS: 'none,10.0.0.0/8' })).toThrow(
      'SIP_ALLOWED_NETWORKS: must be `none`',
    );
  });

  describe('of NATS', () => {
    const url = { NATS_URL: 'tls://nats.example.com:4222' };
    const nkey = `SU${'A'.repeat(56)}`;

    test('names the files and the key with which the gateway signs in', () => {
      const { nats } = loadConfig({
        ...{ ...url, NATS_CREDS: '/creds', NATS_CA: '/ca', NATS_CERT: '/cert', NATS_KEY: '/key' },
      });

      expect(nats.access).toEqual({ creds: '/creds', ca: '/ca', cert: '/cert', key: '/key' });
      expect(loadConfig({ ...url, NATS_NKEY: nkey }).nats.access).toEqual({ nkey });
    });

    test.each([
      ['NATS_CREDS: needs NATS_URL', { NATS_CREDS: '/creds' }],
      ['NATS_CA: needs NATS_URL', { NATS_CA: '/ca' }],
      ['NATS_CERT: needs NATS_KEY', { ...url, NATS_CERT: '/cert' }],
      ['NATS_KEY: needs NATS_CERT', { ...url, NATS_KEY: '/key' }],
      ['NATS_CREDS: contradicts NATS_NKEY', { ...url, NATS_CREDS: '/creds', NATS_NKEY: nkey }],
      [
        'NATS_CREDS: contradicts the user, password or token in NATS_URL',
        { NATS_URL: 'nats://one:4222,nats://user:hush@two:4222', NATS_CREDS: '/creds' },
      ],
      [
        'NATS_NKEY: contradicts the user, password or token in NATS_URL',
        { NATS_URL: 'nats://hush@one:4222', NATS_NKEY: nkey },
      ],
      [
        'NATS_NKEY: must be the seed of a user’s nkey: SU and 56 more characters',
        { ...url, NATS_NKEY: 'SAhush' },
      ],
    ])('%s', (message, variables) => {
      expect(() => loadConfig(variables)).toThrow(`Bad configuration:\n  ${message}`);
      expect(() => loadConfig(variables)).not.toThrow('hush');
    });
  });

  test('reads DNS_SERVERS, each with an optional port', () => {
    const servers = '10.0.0.2, 10.0.0.3:5353,2001:db8::2,[2001:db8::3]:53';
    expect(loadConfig({ DNS_SERVERS: servers }).dnsServers).toEqual(
      servers.split(',').map((server) => server.trim()),
    );
    for (const wrong of ['dns.example', '10.0.0.2:0', '10.0.0.2,', '[10.0.0.2]:53']) {
      expect(() => loadConfig({ DNS_SERVERS: wrong })).toThrow(/DNS_SERVERS/);
    }
  });

  describe('of secrets', () => {
    let folder: string;
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'offhook-secrets-'));
    });
    afterAll(() => rm(folder, { recursive: true, force: true }));

    async function fileWith(text: string): Promise<string> {
      const path = join(folder, randomUUID());
      await writeFile(path, text);
      return path;
    }

    const key = 'ab'.repeat(32);
    const nkey = `SU${'A'.repeat(56)}`;

    test('can come from files, whose last newline is not a part of the secret', async () => {
      const config = loadConfig({
        DATABASE_URL_FILE: await fileWith('postgres://offhook:hush@db/offhook\n'),
        NATS_URL_FILE: await fileWith('tls://nats:4222\r\n'),
        NATS_NKEY_FILE: await fileWith(`${nkey}\n`),
        DRACHTIO_URL_FILE: await fileWith('tcp://:cymru@sip:9022'),
        SECRETS_KEY_FILE: await fileWith(`${key}\n`),
      });

      expect(config).toMatchObject({
        databaseUrl: 'postgres://offhook:hush@db/offhook',
        nats: { url: 'tls://nats:4222', access: { nkey } },
        drachtioServers: [{ host: 'sip', port: 9022, secret: 'cymru' }],
        secretsKey: key,
      });
    });

    test('of trunks and speech-to-text can come from files too', async () => {
      const path = await fileWith('two\nlines\n\n');

      expect(readSecrets(['ACME_PASSWORD'], { ACME_PASSWORD_FILE: path })).toEqual({
        ACME_PASSWORD: 'two\nlines\n',
      });
      expect(() =>
        readSecrets(['ONE', 'TWO'], { ONE: 'hush', ONE_FILE: path, TWO_FILE: '/nowhere' }),
      ).toThrow(
        'ONE: contradicts ONE_FILE; set only one of them\nTWO_FILE: /nowhere cannot be read (ENOENT)',
      );
    });

    test('from files that cannot be used are named with their variable and path', async () => {
      const [empty, large] = [await fileWith('\n'), await fileWith('x'.repeat(70_000))];
      const wrong = await fileWith('hush');
      const loaded = () =>
        loadConfig({
          ...{ DATABASE_URL: 'postgres://db/x', DATABASE_URL_FILE: wrong, NATS_URL_FILE: empty },
          ...{ NATS_NKEY_FILE: large, DRACHTIO_URL_FILE: folder, SECRETS_KEY_FILE: wrong },
        });

      expect(loaded).toThrow(
        [
          'Bad configuration:',
          '  DATABASE_URL: contradicts DATABASE_URL_FILE; set only one of them',
          `  NATS_URL_FILE: ${empty} is empty`,
          `  NATS_NKEY_FILE: ${large} is larger than 65536 bytes`,
          `  DRACHTIO_URL_FILE: ${folder} cannot be read (EISDIR)`,
          `  SECRETS_KEY_FILE: ${wrong}: must be 32 bytes, as 64 hex digits or base64 (openssl rand -hex 32 makes one)`,
        ].join('\n'),
      );
    });

    test.each([
      ['DATABASE_URL', 'hush:hush'],
      ['DATABASE_URL', 'mysql://user:hush@host/db'],
      ['NATS_URL', 'http://user:hush@host:4222'],
      ['NATS_URL', 'nats://user:hush%zz@host:4222'],
      ['NATS_NKEY', 'SAhush'],
      ['DRACHTIO_URL', 'hush'],
      ['DRACHTIO_URL', 'tcp://:hush@'],
      ['DRACHTIO_URL', 'tcp://:hush%zz@host'],
      ['SECRETS_KEY', 'hush'],
      ['SECRETS_KEY_PREVIOUS', 'hush'],
    ])('are not quoted by the error about %s=%s', async (name, value) => {
      const url = name === 'NATS_URL' ? {} : { NATS_URL: 'nats://host' };
      const messageOf = (variables: Record<string, string>): string => {
        try {
          loadConfig({ SECRETS_KEY: key, ...url, ...variables });
          return 'fine';
        } catch (error) {
          return inspect(error);
        }
      };
      const fromFile = messageOf({
        ...{ [name]: '', [`${name}_FILE`]: await fileWith(value) },
      });

      for (const message of [messageOf({ [name]: value }), fromFile]) {
        expect(message).toContain(`${name}`);
        expect(message).not.toContain('hush');
      }
      expect(fromFile).toContain(`${name}_FILE: ${folder}`);
    });
  });

  test('a call may live as long as it may queue, ring and talk', () => {
    const hourMs = 3_600_000;
    // Under a rule set with hours.
    const queueMs = 72 * hourMs;
    const ringMs = 180_000;
    const lifeOf = (variables: Record<string, string>) => loadConfig(variables).calls.maxLifeMs;

    expect(lifeOf({})).toBe(queueMs + ringMs + 2 * hourMs);
    expect(
      lifeOf({ QUEUE_TIMEOUT_MS: `${80 * hourMs}`, MAX_CALL_DURATION_MS: `${24 * hourMs}` }),
    ).toBe(80 * hourMs + ringMs + 24 * hourMs);
  });
});
