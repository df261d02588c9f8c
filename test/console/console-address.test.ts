import { describe, expect, test } from 'vitest';
import { consoleAddress } from '../../src/console/console-address.ts';

describe('the address of the console', () => {
  test.each<[string, { host: string; publicUrl?: string }, string | undefined]>([
    ['on this machine', { host: '127.0.0.1' }, 'http://127.0.0.1:3000/console'],
    ['by its name', { host: 'localhost' }, 'http://localhost:3000/console'],
    ['by IPv6', { host: '::1' }, 'http://[::1]:3000/console'],
    ['on loopback, of every address', { host: '0.0.0.0' }, 'http://127.0.0.1:3000/console'],
    ['on loopback, of every IPv6 address', { host: '::' }, 'http://[::1]:3000/console'],
    ['nowhere, on an address of a network', { host: '10.0.0.5' }, undefined],
    ['nowhere, on a name of a network', { host: 'gateway.example.com' }, undefined],
    [
      'at PUBLIC_URL, wherever the gateway listens',
      { host: '10.0.0.5', publicUrl: 'https://calls.example.com' },
      'https://calls.example.com/console',
    ],
    [
      'below the path that a proxy puts in front',
      { host: '127.0.0.1', publicUrl: 'https://example.com/voice/' },
      'https://example.com/voice/console',
    ],
  ])('%s', (_where, { host, publicUrl }, expected) => {
    expect(consoleAddress({ host, publicUrl }, 3_000)).toBe(expected);
  });
});
