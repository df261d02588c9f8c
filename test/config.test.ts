import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../src/config.ts';

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
});
