import { describe, expect, test } from 'vitest';
import { beyondLaptop, networksOpenTo } from '../src/app/networks.ts';
import { loadConfig } from '../src/config.ts';
import { createAddressGuard } from '../src/lib/address-guard.ts';

const everyFormOfLoopback = [
  'http://127.0.0.1/',
  'http://127.8.9.10/',
  'http://2130706433/',
  'http://0x7f.1/',
  'http://[::1]/',
  'http://[::ffff:127.0.0.1]/',
].map((text) => new URL(text));

/** Returns the loopback URLs that may receive notifications. */
function reachable(variables: Readonly<Record<string, string>>, hasTrunks = false) {
  const config = loadConfig(variables);
  const beyond = beyondLaptop(config, hasTrunks);
  const guard = createAddressGuard(networksOpenTo(config.notifier.allowedNetworks, beyond));
  return everyFormOfLoopback.filter((url) => guard.isHostAllowed(url));
}

const secretsKey = { SECRETS_KEY: 'a'.repeat(64) };

describe('loopback without NOTIFY_ALLOWED_NETWORKS', () => {
  test.each([
    ['nothing configured', {}],
    ['an empty variable', { NOTIFY_ALLOWED_NETWORKS: '' }],
    ['the API on another address of this machine', { HTTP_HOST: '::1' }],
    ['the API on localhost', { HTTP_HOST: 'localhost', PUBLIC_URL: 'http://localhost:3000' }],
  ])('is allowed on a laptop: %s', (_name, variables) => {
    expect(reachable(variables)).toEqual(everyFormOfLoopback);
  });

  test.each([
    ['HTTP_HOST', { HTTP_HOST: '0.0.0.0' }],
    ['HTTP_HOST', { HTTP_HOST: '::' }],
    ['HTTP_HOST', { HTTP_HOST: '10.0.0.5' }],
    ['HTTP_HOST', { HTTP_HOST: 'gateway.internal' }],
    ['PUBLIC_URL', { PUBLIC_URL: 'https://offhook.example.com' }],
    ['DRACHTIO_URL', { DRACHTIO_URL: 'tcp://:secret@127.0.0.1:9022' }],
    ['DATABASE_URL', { DATABASE_URL: 'postgres://127.0.0.1/offhook', ...secretsKey }],
  ])('is refused once %s says that this is not a laptop: %j', (name, variables) => {
    expect(beyondLaptop(loadConfig(variables), false)).toEqual([name]);
    expect(reachable(variables)).toEqual([]);
    expect(reachable({ ...variables, NOTIFY_ALLOWED_NETWORKS: '' })).toEqual([]);
  });

  test('is refused if there are trunks', () => {
    expect(reachable({}, true)).toEqual([]);
  });
});

test('an explicit setting applies everywhere: `none` on a laptop, loopback in production', () => {
  expect(reachable({ NOTIFY_ALLOWED_NETWORKS: 'none' })).toEqual([]);
  expect(
    reachable({ HTTP_HOST: '0.0.0.0', NOTIFY_ALLOWED_NETWORKS: '127.0.0.0/8,::1/128' }, true),
  ).toEqual(everyFormOfLoopback);
});
