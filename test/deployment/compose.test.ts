// docker-compose.yml, without a container engine: checks its form, and that its parts fit each
// other, the gateway and sip-config/README.md.

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
  test('starts two gateways, a proxy, drachtio, NATS, PostgreSQL and its backup, and on request Prometheus and Grafana', () => {
    expect(Object.keys(compose.services).sort()).toEqual([
      'backup',
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

  test('contains no secret', () => {
    // The credentials of a bucket are optional, and have no default.
    const required = text.replaceAll(/^ +(AWS_[A-Z_]+): \$\{\1:-\}\n/gm, '');
    const secret = /PASSWORD|SECRET|KEY|TOKEN/;
    for (const { name, use } of variablesOf(required)) {
      if (secret.test(name)) expect(use, name).toBe('required');
    }
    for (const [, line] of required.matchAll(
      /^\s+(?:[A-Z_]*(?:PASSWORD|SECRET|KEY)[A-Z_]*): (.*)$/gm,
    )) {
      expect(line).toMatch(/^'?"?\$\{[A-Z_]+:\?[^}]*\}"?'?$/);
    }
    for (const [, password] of text.matchAll(/\w+:\/\/[^\s:]*:([^\s@]+)@/g)) {
      expect(password).toMatch(/^\$\{[A-Z_]+:\?/);
    }
  });

  test('uses exactly the variables that sip-config/README.md lists', () => {
    const [, section = ''] =
      /^## Production$([\s\S]*?)^## /m.exec(textOf('sip-config/README.md')) ?? [];
    const documented = [...section.matchAll(/^\| `([A-Z_][A-Z0-9_]*)` \| (.*?) \|/gm)].map(
      ([, name, fallback]) => [name, fallback === 'required' ? 'required' : 'optional'],
    );
    const used = variablesOf(text).map(({ name, use }) => [name, use]);

    expect(new Map(documented as [string, string][])).toEqual(
      new Map(used as unknown as [string, string][]),
    );
  });

  test('the backup is of the same version as the server, and shares its network and archive', () => {
    const { postgres, backup } = compose.services;

    expect(backup).toMatchObject({
      image: postgres?.image,
      network_mode: 'service:postgres',
      environment: { PGUSER: postgres?.environment?.['POSTGRES_USER'] },
      configs: postgres?.configs,
      volumes: ['archive:/archive'],
    });
    // Only a restore reads it there.
    expect(postgres?.volumes).toContain('archive:/archive:ro');
  });

  test.each(services)('%s has an image with a version tag', (_name, { image }) => {
    expect(image.split(':')[1]).toMatch(/^v?\d/);
  });

  test('builds the image of the gateways once, and pulls it from nowhere', () => {
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
    '%s has only the capabilities that it uses, and a read-only root',
    (name, service) => {
      expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'] });
      // They start as root, and need these to give the volume to another user and to become it.
      const added: Readonly<Record<string, readonly string[]>> = {
        postgres: ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETGID', 'SETUID'],
        backup: ['CHOWN', 'SETGID', 'SETUID'],
      };
      expect(service.cap_add ?? []).toEqual(added[name] ?? []);
    },
  );

  test('drachtio does not run as root, and does not log messages with phone numbers', () => {
    expect(compose.services['drachtio']).toMatchObject({
      user: '1000:1000',
      environment: { DRACHTIO_LOGLEVEL: 'warning' },
    });
  });

  test.each(services)(
    '%s depends only on existing services with health checks',
    (_name, service) => {
      for (const other of Object.keys(service.depends_on ?? {})) {
        expect(compose.services[other]?.healthcheck, other).toBeDefined();
      }
    },
  );

  test('declares exactly the volumes and configurations that are used, and their files exist', () => {
    const mounts = services.flatMap(([, { volumes = [] }]) =>
      volumes.map((volume) => volume.split(':')[0] ?? ''),
    );
    const [folders, named] = [
      mounts.filter((source) => source.startsWith('.')),
      mounts.filter((source) => !source.startsWith('.')),
    ];
    const configs = services.flatMap(([, service]) => service.configs ?? []);

    expect(new Set(named)).toEqual(new Set(Object.keys(compose.volumes)));
    expect(new Set(configs.map(({ source }) => source))).toEqual(
      new Set(Object.keys(compose.configs)),
    );
    for (const path of [...folders, ...Object.values(compose.configs).map(({ file }) => file)]) {
      expect(existsSync(`${repository}${path}`), path).toBe(true);
    }
  });

  test('publishes the ports of internal services on loopback only', () => {
    for (const port of services.flatMap(([, { ports = [] }]) => ports)) {
      expect(port).toMatch(/^127\.0\.0\.1:/);
    }
    expect(compose.services['drachtio']?.environment).toMatchObject({
      DRACHTIO_ADMIN_ADDRESS: '127.0.0.1',
    });
    expect(compose.services['proxy']?.environment).toMatchObject({ API_HOST: '127.0.0.1' });
  });

  test('uses no port of the host twice', () => {
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

  test('sets only variables of the gateway, to valid values', () => {
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

  test('has two ports for each of its possible calls', () => {
    const { portMin, portMax } = config.media;
    expect((portMax - portMin + 1) / 2).toBeGreaterThanOrEqual(config.calls.maxConcurrent);
    expect(service.ulimits?.nofile).toBeGreaterThan(4 * config.calls.maxConcurrent);
  });

  test('gets enough time to let calls end and to hang up the rest', () => {
    expect(durationMs(service.stop_grace_period ?? '')).toBeGreaterThanOrEqual(
      config.shutdownDelayMs + config.shutdownTimeoutMs + 20_000,
    );
  });

  test('accepts requests until the proxy has noticed that it stops', () => {
    const proxy = textOf('.docker/haproxy.cfg');
    const [, every = '', soon = '', fall] =
      /inter (\w+) fastinter (\w+) fall (\d)/.exec(proxy) ?? [];
    const [, check = ''] = /timeout check (\w+)/.exec(proxy) ?? [];
    expect(fall).toBe('2');
    // The worst case: the gateway stops just after a check, and the next two checks time out.
    const longestMs = durationMs(every) + durationMs(soon) + 2 * durationMs(check);
    expect(config.shutdownDelayMs).toBeGreaterThan(longestMs);
  });

  test('runs without capabilities, and writes to memory, except for recordings', () => {
    expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'] });
    expect(service.tmpfs?.map((mount) => mount.split(':')[0])).toEqual(['/tmp', '/data']);
    expect(service.volumes).toEqual(['./sip-config:/app/sip-config:ro', 'recordings:/recordings']);
    // Both gateways have the same folders, so that each can read what the other has stored, and
    // finish what the other has left behind. The image gives the folder to the gateway's user.
    expect(config.recording).toMatchObject({
      store: { kind: 'folder', path: '/recordings/store' },
      spool: '/recordings/spool',
    });
    expect(textOf('.docker/Dockerfile')).toContain(
      'RUN mkdir /data /recordings && chown node:node /data /recordings',
    );
  });
});
