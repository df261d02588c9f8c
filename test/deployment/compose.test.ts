// docker-compose.yml, without an engine: its form, and that its parts fit each other, the gateway and sip-config/README.md.

import { existsSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { configurationTable, loadConfig } from '../../src/config.ts';
import { version } from '../../src/version.ts';
import {
  durationMs,
  readCompose,
  repository,
  someVariables,
  textOf,
  variablesOf,
} from './compose.ts';

const text = textOf('docker-compose.yml');
const compose = readCompose();
const services = Object.entries(compose.services);
const gateways = services.filter(([, { image }]) => image.startsWith('offhook:'));

describe('docker-compose.yml', () => {
  test('starts two gateways, a proxy in front of them, drachtio, NATS and PostgreSQL; when asked, what shows metrics', () => {
    expect(Object.keys(compose.services).sort()).toEqual([
      'drachtio',
      'gateway-1',
      'gateway-2',
      'grafana',
      'nats',
      'postgres',
      'prometheus',
      'proxy',
    ]);
    const asked = services.filter(([, { profiles }]) => profiles !== undefined);
    expect(asked.map(([name, { profiles }]) => [name, profiles])).toEqual([
      ['prometheus', ['metrics']],
      ['grafana', ['metrics']],
    ]);
    expect(gateways.map(([name]) => name)).toEqual(['gateway-1', 'gateway-2']);
  });

  test.each(Object.keys(someVariables))('does not start without %s', (name) => {
    expect(() => readCompose({ ...someVariables, [name]: '' })).toThrow(
      `${name}: see Production in sip-config/README.md`,
    );
  });

  test('has no secret of its own', () => {
    const secret = /PASSWORD|SECRET|KEY|TOKEN/;
    for (const { name, use } of variablesOf(text)) {
      if (secret.test(name)) expect(use, name).toBe('required');
    }
    for (const [, line] of text.matchAll(
      /^\s+(?:[A-Z_]*(?:PASSWORD|SECRET|KEY)[A-Z_]*): (.*)$/gm,
    )) {
      expect(line).toMatch(/^'?"?\$\{[A-Z_]+:\?[^}]*\}"?'?$/);
    }
    for (const [, password] of text.matchAll(/\w+:\/\/[^\s:]*:([^\s@]+)@/g)) {
      expect(password).toMatch(/^\$\{[A-Z_]+:\?/);
    }
  });

  test('takes the variables that sip-config/README.md has, and no others', () => {
    const [, section = ''] =
      /^## Production$([\s\S]*?)^## /m.exec(textOf('sip-config/README.md')) ?? [];
    const documented = [...section.matchAll(/^\| `([A-Z_]+)` \| (.*?) \|/gm)].map(
      ([, name, fallback]) => [name, fallback === 'required' ? 'required' : 'optional'],
    );
    const used = variablesOf(text).map(({ name, use }) => [name, use]);

    expect(new Map(documented as [string, string][])).toEqual(
      new Map(used as unknown as [string, string][]),
    );
  });

  test.each(services)('%s has an image of a certain version', (_name, { image }) => {
    expect(image.split(':')[1]).toMatch(/^v?\d/);
  });

  test('builds the image of the gateways once, and looks for it nowhere else', () => {
    expect(new Set(gateways.map(([, { image }]) => image))).toEqual(
      new Set([`offhook:${version}`]),
    );
    expect(
      gateways.map(([, { build, pull_policy }]) => [build !== undefined, pull_policy]),
    ).toEqual([
      [true, 'build'],
      [false, 'never'],
    ]);
  });

  test.each(services)(
    '%s has no capability that it does not use, and a root that is not written to',
    (name, service) => {
      expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'] });
      // What the start of its image gives the volume to another user with.
      const added = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETGID', 'SETUID'];
      expect(service.cap_add ?? []).toEqual(name === 'postgres' ? added : []);
    },
  );

  test('drachtio does not run as root, nor write messages with their numbers', () => {
    expect(compose.services['drachtio']).toMatchObject({
      user: '1000:1000',
      environment: { DRACHTIO_LOGLEVEL: 'warning' },
    });
  });

  test.each(services)(
    '%s waits for services that there are, by conditions they can meet',
    (_name, service) => {
      for (const other of Object.keys(service.depends_on ?? {})) {
        expect(compose.services[other]?.healthcheck, other).toBeDefined();
      }
    },
  );

  test('declares the volumes and configurations that are used, and no others; files are there', () => {
    const mounts = services.flatMap(([, { volumes = [] }]) =>
      volumes.map((volume) => volume.split(':')[0] ?? ''),
    );
    const [folders, named] = [
      mounts.filter((source) => source.startsWith('.')),
      mounts.filter((source) => !source.startsWith('.')),
    ];
    const configs = services.flatMap(([, service]) => service.configs ?? []);

    expect(named.sort()).toEqual(Object.keys(compose.volumes).sort());
    expect(configs.map(({ source }) => source).sort()).toEqual(Object.keys(compose.configs).sort());
    for (const path of [...folders, ...Object.values(compose.configs).map(({ file }) => file)]) {
      expect(existsSync(`${repository}${path}`), path).toBe(true);
    }
  });

  test('publishes what only its own parts talk to on loopback', () => {
    for (const port of services.flatMap(([, { ports = [] }]) => ports)) {
      expect(port).toMatch(/^127\.0\.0\.1:/);
    }
    expect(compose.services['drachtio']?.environment).toMatchObject({
      DRACHTIO_ADMIN_ADDRESS: '127.0.0.1',
    });
    expect(compose.services['proxy']?.environment).toMatchObject({ API_HOST: '127.0.0.1' });
  });

  test('gives no port of the host away twice', () => {
    const taken = [
      ...services.flatMap(([, { ports = [] }]) =>
        ports.map((port) => Number(port.split(':').at(-2))),
      ),
      ...gateways.map(([, { environment }]) => Number(environment?.['HTTP_PORT'])),
      Number(compose.services['proxy']?.environment?.['API_PORT']),
      Number(/bind 127\.0\.0\.1:(\d+)/.exec(textOf('.docker/haproxy.cfg'))?.[1]),
      Number(/sip:\*:(\d+)/.exec(compose.services['drachtio']?.command?.join(' ') ?? '')?.[1]),
      Number(compose.services['drachtio']?.environment?.['DRACHTIO_ADMIN_TCP_PORT']),
      Number(compose.services['grafana']?.environment?.['GF_SERVER_HTTP_PORT']),
      Number(
        /127\.0\.0\.1:(\d+)/.exec(compose.services['prometheus']?.command?.join(' ') ?? '')?.[1],
      ),
      ...gateways.flatMap(([, { environment }]) => {
        const [first, last] = [environment?.['MEDIA_PORT_MIN'], environment?.['MEDIA_PORT_MAX']];
        const count = Number(last) - Number(first) + 1;
        return Array.from({ length: count }, (_, index) => Number(first) + index);
      }),
    ];

    expect(taken.filter((port) => !(port > 0 && port < 32_768))).toEqual([]);
    expect(new Set(taken).size).toBe(taken.length);
  });
});

describe.each(gateways)('%s', (name, service) => {
  const config = loadConfig(service.environment);

  test('sets variables of the gateway only, to what it takes', () => {
    const known = configurationTable().map((row) => row.name);
    expect(Object.keys(service.environment ?? {}).filter((key) => !known.includes(key))).toEqual(
      [],
    );
    expect(config.drachtioServers).toEqual([
      { host: '127.0.0.1', port: 9022, secret: someVariables.DRACHTIO_SECRET },
    ]);
    expect(config).toMatchObject({
      nodeId: name,
      secretsKey: someVariables.SECRETS_KEY,
      media: { publicHost: someVariables.PUBLIC_IP },
    });
    for (const url of [config.databaseUrl, config.nats.url]) {
      expect(new URL(url ?? '').username).toBe('offhook');
    }
  });

  test('has two ports for each call that it may have', () => {
    const { portMin, portMax } = config.media;
    expect((portMax - portMin + 1) / 2).toBeGreaterThanOrEqual(config.calls.maxConcurrent);
    expect(service.ulimits?.nofile).toBeGreaterThan(4 * config.calls.maxConcurrent);
  });

  test('is given the time to let its calls end, and to end the rest', () => {
    expect(durationMs(service.stop_grace_period ?? '')).toBeGreaterThanOrEqual(
      config.shutdownDelayMs + config.shutdownTimeoutMs + 20_000,
    );
  });

  test('takes requests until the proxy has seen that it stops', () => {
    const proxy = textOf('.docker/haproxy.cfg');
    const [, every = '', soon = '', fall] =
      /inter (\w+) fastinter (\w+) fall (\d)/.exec(proxy) ?? [];
    const [, check = ''] = /timeout check (\w+)/.exec(proxy) ?? [];
    expect(fall).toBe('2');
    // It stops just after a check, and the next two answer only when they must.
    const longestMs = durationMs(every) + durationMs(soon) + 2 * durationMs(check);
    expect(config.shutdownDelayMs).toBeGreaterThan(longestMs);
  });

  test('runs without rights, and writes to memory only', () => {
    expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'] });
    expect(service.tmpfs?.map((mount) => mount.split(':')[0])).toEqual(['/tmp', '/data']);
    expect(service.volumes).toEqual(['./sip-config:/app/sip-config:ro']);
  });
});
