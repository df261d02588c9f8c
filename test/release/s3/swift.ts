// Runs OpenStack Swift with its S3 interface: one proxy, and one server each for accounts,
// containers and objects, on free ports of the loopback address.

import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AwsV4Signer } from 'aws4fetch';
import type { BucketTarget } from '../../../src/recording/store/recording-store.ts';
import { eventually } from '../../support/eventually.ts';
import { freeUdpPort } from '../../support/free-port.ts';
import { type KeptProgram, keepProgram } from '../../support/kept-program.ts';

const roles = ['account', 'container', 'object'] as const;
const middleware = [
  ...['catch_errors', 'gatekeeper', 'cache', 'listing_formats', 's3api', 'tempauth', 'copy'],
  ...['dlo', 'slo', 'versioned_writes'],
];

export async function startSwift() {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-swift-'));
  await mkdir(join(folder, 'devices/disk'), { recursive: true });
  const hash = '[swift-hash]\nswift_hash_path_suffix = test\nswift_hash_path_prefix = test\n';
  const policy = '[storage-policy:0]\nname = only\ndefault = yes\n';
  await writeFile(join(folder, 'swift.conf'), hash + policy);
  const servers: KeptProgram[] = [];
  const ports = new Set<number>();
  /** A server that hasn't started yet doesn't hold its port. */
  const unusedPort = async (): Promise<number> => {
    const port = await freeUdpPort();
    if (ports.has(port)) return await unusedPort();
    ports.add(port);
    return port;
  };
  for (const role of roles) {
    const port = await unusedPort();
    ring(folder, role, port);
    const app = `[pipeline:main]\npipeline = ${role}-server\n[app:${role}-server]\nuse = egg:swift#${role}\n`;
    const devices = `devices = ${join(folder, 'devices')}\nmount_check = false\n`;
    await writeFile(join(folder, `${role}.conf`), common(folder, port) + devices + app);
    servers.push(await start(folder, role));
  }
  const cachePort = await unusedPort();
  servers.push(
    await keepProgram({
      program: 'memcached',
      args: ['-u', 'nobody', '-l', '127.0.0.1', '-p', String(cachePort)],
      ...{ cwd: folder, logFile: join(folder, 'memcached.log') },
    }),
  );
  const port = await unusedPort();
  await writeFile(join(folder, 'proxy.conf'), proxyConfiguration(folder, port, cachePort));
  servers.push(await start(folder, 'proxy'));
  const endpoint = `http://127.0.0.1:${port}`;
  const target: BucketTarget = {
    ...{ kind: 's3', bucket: 'recordings', prefix: 'calls', endpoint, region: 'us-east-1' },
    ...{ accessKeyId: 'test:tester', secretAccessKey: 'testing', sessionToken: undefined },
  };
  const log = () => readFile(join(folder, 'proxy.log'), 'utf8');
  await eventually(() => makeBucket(target), 'the proxy makes a bucket', 60_000).catch(
    async (error: unknown) => {
      throw new Error(await log(), { cause: error });
    },
  );
  return {
    target,
    async stop(): Promise<void> {
      await Promise.all(servers.map((server) => server.end()));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function common(folder: string, port: number): string {
  const lines = [
    ...['[DEFAULT]', 'bind_ip = 127.0.0.1', `bind_port = ${port}`, 'workers = 0', 'user = root'],
    `swift_dir = ${folder}`,
  ];
  return `${lines.join('\n')}\n`;
}

function proxyConfiguration(folder: string, port: number, cachePort: number): string {
  const options: Readonly<Record<string, string>> = {
    cache: `memcache_servers = 127.0.0.1:${cachePort}\n`,
    s3api: 'location = us-east-1\n',
    tempauth: 'user_test_tester = testing .admin\n',
  };
  const filters = middleware.map((name) => {
    const egg = name === 'cache' ? 'memcache' : name;
    return `[filter:${name}]\nuse = egg:swift#${egg}\n${options[name] ?? ''}`;
  });
  return [
    common(folder, port),
    `[pipeline:main]\npipeline = ${[...middleware, 'proxy-server'].join(' ')}\n`,
    ...filters,
    '[app:proxy-server]\nuse = egg:swift#proxy\naccount_autocreate = true\n',
  ].join('');
}

function ring(folder: string, role: string, port: number): void {
  const builder = join(folder, `${role}.builder`);
  for (const args of [
    ['create', '2', '1', '0'],
    ['add', `r1z1-127.0.0.1:${port}/disk`, '1'],
    ['rebalance'],
  ]) {
    const { status, stderr } = spawnSync('swift-ring-builder', [builder, ...args]);
    if (status !== 0) throw new Error(`swift-ring-builder ${args.join(' ')}: ${String(stderr)}`);
  }
}

function start(folder: string, role: string) {
  return keepProgram({
    ...{ program: `swift-${role}-server`, args: [join(folder, `${role}.conf`), '-v'] },
    ...{ cwd: folder, logFile: join(folder, `${role}.log`) },
  });
}

async function makeBucket(target: BucketTarget): Promise<boolean> {
  const { endpoint = '', bucket, accessKeyId, secretAccessKey, region } = target;
  const { url, headers } = await new AwsV4Signer({
    ...{ method: 'PUT', url: `${endpoint}/${bucket}`, accessKeyId, secretAccessKey, region },
    service: 's3',
  }).sign();
  return await fetch(url, { method: 'PUT', headers }).then(
    ({ status }) => status === 200,
    () => false,
  );
}
