// The manifests under .docker/kubernetes, without a cluster: checks them against the types of
// Kubernetes, and that their parts fit each other and the gateway.

import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { configurationTable, loadConfig } from '../../src/config.ts';
import { version } from '../../src/version.ts';
import { readCompose, repository, textOf } from './compose.ts';
import { readManifests, statefulSet, typeErrors } from './kubernetes.ts';

const manifests = readManifests('gateway.yaml');
const page = textOf('sip-config/kubernetes-and-systemd.md');
const ofKind = (wanted: string): (typeof manifests)[number] => {
  const found = manifests.find(({ kind }) => kind === wanted);
  if (found === undefined) throw new Error(`no ${wanted}`);
  return found;
};
const { spec } = statefulSet.parse(ofKind('StatefulSet'));
const pod = spec.template.spec;
const [gateway] = pod.containers;
const [drachtio] = pod.initContainers;
const settingOf = (name: string): string =>
  gateway.env.find((variable) => variable.name === name)?.value ?? '';

describe('the manifests', () => {
  test('have the types of Kubernetes', async () => {
    expect(await typeErrors(manifests)).toBe('');
  });

  test('would fail with a misspelled member', async () => {
    const service = { ...ofKind('Service'), spec: { selectors: {} } };
    expect(await typeErrors([service])).toMatch(/selectors.* does not exist/);
  });

  test('contain no secret', () => {
    for (const file of readdirSync(`${repository}.docker/kubernetes`)) {
      expect(readManifests(file).map(({ kind }) => kind)).not.toContain('Secret');
    }
    const secret = /PASSWORD|SECRET|KEY|DATABASE_URL|NATS_URL/;
    for (const { name, valueFrom } of [...gateway.env, ...drachtio.env]) {
      if (secret.test(name)) expect(valueFrom?.secretKeyRef, name).toBeDefined();
    }
  });

  test('select the pods by a label that the pods have', () => {
    const { labels } = spec.template.metadata;
    const selectors = manifests.flatMap((manifest) => selectorsOf(manifest));
    expect(selectors).toHaveLength(6);
    for (const selector of selectors) expect(labels).toMatchObject(selector);
  });

  test('select the metrics of gateways that are not ready too', () => {
    const [monitor] = readManifests('service-monitor.yaml');
    expect(monitor).toMatchObject({
      spec: { selector: { matchLabels: { 'app.kubernetes.io/component': 'nodes' } } },
    });
    const nodes = manifests.find(({ metadata }) => metadata.name === spec.serviceName);
    expect(nodes).toMatchObject({
      metadata: { labels: { 'app.kubernetes.io/component': 'nodes' } },
      spec: { clusterIP: 'None', publishNotReadyAddresses: true },
    });
  });

  test('stop at most one gateway at a time', () => {
    expect(ofKind('PodDisruptionBudget')).toMatchObject({ spec: { maxUnavailable: 1 } });
  });
});

describe('the gateway’s pod', () => {
  test('uses the same images as docker-compose.yml', () => {
    expect(gateway.image).toBe(`offhook:${version}`);
    expect(drachtio.image).toBe(readCompose().services['drachtio']?.image);
  });

  test('sets only variables of the gateway, to valid values', () => {
    const known = configurationTable().map(({ name }) => name);
    const helpers = ['NODE_ADDRESS', 'DRACHTIO_SECRET'];
    const names = gateway.env.map(({ name }) => name);
    expect(names.filter((name) => !known.includes(name))).toEqual(helpers);

    // Kubernetes replaces $(NAME) by a variable that is defined further up.
    const values: Record<string, string> = {};
    for (const { name, value, valueFrom } of gateway.env) {
      const plain = value?.replace(/\$\((\w+)\)/g, (all, other: string) => values[other] ?? all);
      values[name] = plain ?? exampleOf(name, valueFrom?.fieldRef?.fieldPath);
    }
    const config = loadConfig(values);
    expect(config).toMatchObject({
      nodeId: 'offhook-0',
      http: { host: '10.0.0.7', port: 3000 },
      media: { host: '10.0.0.7', publicHost: '10.0.0.7' },
      drachtioServers: [{ host: '127.0.0.1', port: 9022, secret: 'an example' }],
    });
  });

  test('has time to drain, and an hour for its calls', () => {
    const needed =
      Number(settingOf('SHUTDOWN_DELAY_MS')) + Number(settingOf('SHUTDOWN_TIMEOUT_MS'));
    expect(Number(settingOf('SHUTDOWN_TIMEOUT_MS'))).toBe(3_600_000);
    expect(pod.terminationGracePeriodSeconds * 1_000).toBeGreaterThanOrEqual(needed + 15_000);
  });

  test('shares the host’s network and loopback with drachtio, which starts first and stops last', () => {
    expect(pod.hostNetwork).toBe(true);
    expect(drachtio.restartPolicy).toBe('Always');
    expect(drachtio.env).toContainEqual({ name: 'DRACHTIO_ADMIN_ADDRESS', value: '127.0.0.1' });
    expect(drachtio.env).toContainEqual({ name: 'DRACHTIO_LOGLEVEL', value: 'warning' });
  });

  test('is not restarted because a server that it needs is away', () => {
    expect(gateway.startupProbe.httpGet.path).toBe('/live');
    expect(gateway.livenessProbe.httpGet.path).toBe('/live');
    expect(gateway.readinessProbe.httpGet.path).toBe('/ready');
  });

  test.each([gateway, drachtio])('$name has no capability and a read-only root', (container) => {
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    const claims = spec.volumeClaimTemplates.map(({ metadata }) => metadata);
    const volumes = [...pod.volumes, ...claims].map(({ name }) => name);
    for (const mount of container.volumeMounts) expect(volumes).toContain(mount.name);
  });

  test('keeps recordings on a disk that outlives it', () => {
    const { mountPath } = gateway.volumeMounts.find(({ name }) => name === 'recordings') ?? {};
    expect(spec.volumeClaimTemplates.map(({ metadata }) => metadata.name)).toEqual(['recordings']);
    for (const name of ['RECORDING_SPOOL', 'RECORDING_STORE']) {
      expect(settingOf(name), name).toMatch(new RegExp(`^${mountPath}/`));
    }
  });

  test('needs only the secrets and the trunks that the page creates', () => {
    const keys = gateway.env.flatMap(({ valueFrom }) => valueFrom?.secretKeyRef?.key ?? []);
    expect(keys.length).toBeGreaterThan(3);
    for (const key of keys) expect(page).toContain(`--from-literal=${key}=`);
    expect(page).toContain('create configmap offhook-trunks --from-file=trunks.yaml=');
  });
});

/** Returns the labels that a manifest selects by: its `matchLabels`, and a service's selector. */
function selectorsOf(value: unknown): readonly object[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]: [string, object]) => {
    const isSelector = key === 'matchLabels' || (key === 'selector' && !('matchLabels' in member));
    return isSelector ? [member] : selectorsOf(member);
  });
}

function exampleOf(name: string, fieldPath?: string): string {
  if (fieldPath === 'metadata.name') return 'offhook-0';
  if (fieldPath === 'status.hostIP') return '10.0.0.7';
  const examples: Readonly<Record<string, string>> = {
    DATABASE_URL: 'postgres://offhook:secret@postgres.example:5432/offhook',
    NATS_URL: 'nats://offhook:secret@nats.example:4222',
    DRACHTIO_SECRET: 'an example',
    SECRETS_KEY: '4'.repeat(64),
  };
  return examples[name] ?? '';
}
