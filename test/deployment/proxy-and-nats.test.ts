// The configurations of HAProxy and NATS that docker-compose.yml mounts.

import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { maxResponseMs } from '../../src/api/context-route.ts';
import { findNatsServer } from '../../src/embedded/nats/nats-program.ts';
import { problemSchema } from '../../src/http/problem.ts';
import { durationMs, readCompose, textOf } from './compose.ts';

const compose = readCompose();
const gateways = Object.entries(compose.services)
  .filter(([, { image }]) => image.startsWith('offhook:'))
  .map(([name, { environment }]) => `${name} 127.0.0.1:${environment?.['HTTP_PORT'] ?? ''} check`);

describe('haproxy.cfg', () => {
  const sections = textOf('.docker/haproxy.cfg').split(/^(?=\w)/m);
  const section = (title: string): string =>
    sections.find((part) => part.startsWith(`${title}\n`)) ?? '';

  test.each([
    ['ready', '/ready'],
    ['alive', '/live'],
  ])('the backend %s contains the gateways, and checks their %s', (name, path) => {
    const backend = section(`backend ${name}`);

    expect([...backend.matchAll(/^\s+server (.*)$/gm)].map(([, server]) => server)).toEqual(
      gateways,
    );
    expect(backend).toMatch(new RegExp(`^\\s+option httpchk GET ${path}$`, 'm'));
  });

  test('retries only if no request was sent, because a POST may have been accepted', () => {
    expect(section('defaults')).toMatch(/^\s+retry-on conn-failure$/m);
  });

  test('waits longer than the longest answer', () => {
    const [, patience = ''] = /^\s+timeout server (\w+)$/m.exec(section('defaults')) ?? [];
    expect(durationMs(patience)).toBeGreaterThan(maxResponseMs);
  });

  test('replaces X-Forwarded-For by the client address, and only the proxy is trusted by the gateways', () => {
    const text = sections.join('');
    expect(section('frontend api')).toMatch(
      /^\s+http-request set-header X-Forwarded-For %\[src\]$/m,
    );
    // `option forwardfor` would keep the client's own header.
    expect(text).not.toMatch(/^\s+option forwardfor/m);
    const servers = [...text.matchAll(/^\s+server \S+ ([\d.]+):/gm)].map(([, host]) => host);
    expect(new Set(servers)).toEqual(new Set(['127.0.0.1']));
    for (const name of ['gateway-1', 'gateway-2']) {
      expect(compose.services[name]?.environment?.['TRUSTED_PROXIES']).toBe('127.0.0.1/32');
    }
  });

  test('answers its own errors with problem documents, and a 503 with Retry-After', () => {
    const errors = [...section('defaults').matchAll(/^\s+http-error status (\d+) (.*)$/gm)];
    expect(errors.map(([, status]) => status)).toEqual(['404', '502', '503', '504']);
    for (const [, status, rest = ''] of errors) {
      const [, document = ''] = /string '(.*?)'/.exec(rest) ?? [];
      expect(problemSchema.omit({ requestId: true }).parse(JSON.parse(document)).status).toBe(
        Number(status),
      );
      expect(rest).toContain('content-type "application/problem+json"');
      // With another status, the request may have been accepted, so clients must not simply retry.
      expect(rest.includes('hdr Retry-After 5')).toBe(status === '503');
    }
  });

  test('answers the health check of its container', () => {
    const [port] = /(?<=bind 127\.0\.0\.1:)\d+/.exec(section('frontend health')) ?? [];
    expect(compose.services['proxy']?.healthcheck.test).toContain(`http://127.0.0.1:${port}/`);
  });

  test('uses exactly the variables of its environment', () => {
    const read = [...sections.join('').matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => name);
    expect(read.sort()).toEqual(Object.keys(compose.services['proxy']?.environment ?? {}).sort());
  });
});

describe('nats.conf', () => {
  const { environment = {}, healthcheck } = compose.services['nats'] ?? {};

  async function check(password: string): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'offhook-nats-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const path = join(folder, 'nats.conf');
    // Debian's nats-server 2.9 does not know this option. The image has a later version.
    await writeFile(path, textOf('.docker/nats.conf').replace(/^\s+sync_interval: .*$/m, ''));
    const program = await findNatsServer(undefined, process.env['PATH'] ?? '');
    const { stderr } = await promisify(execFile)(program, ['-t', '-c', path], {
      env: { NATS_PASSWORD: password },
    });
    return stderr;
  }

  test('is valid for nats-server, even if the password begins with digits', async () => {
    expect(await check(environment['NATS_PASSWORD'] ?? '')).toContain('is valid');
    // Without the quotes, nats-server reads the password as a number.
    await expect(check((environment['NATS_PASSWORD'] ?? '').replaceAll('"', ''))).rejects.toThrow(
      /NATS_PASSWORD|password/,
    );
  });

  test('listens on the addresses that the gateways and the health check use', () => {
    const text = textOf('.docker/nats.conf');
    expect(text).toMatch(/^listen: 0\.0\.0\.0:4222$/m);
    expect(text).toMatch(/^http: 127\.0\.0\.1:8222$/m);
    expect(compose.services['nats']?.ports).toEqual(['127.0.0.1:4222:4222']);
    expect(healthcheck?.test.at(-1)).toBe('http://127.0.0.1:8222/healthz');
  });

  test('stores its data on the volume', () => {
    const [, folder] = /store_dir: (\S+)/.exec(textOf('.docker/nats.conf')) ?? [];
    expect(compose.services['nats']?.volumes).toEqual([`nats:${folder}`]);
  });
});
