// A Prometheus of the test's own, with the files that docker-compose.yml gives to one. It uses the
// programs of Debian, `prometheus` and `promtool`.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse, stringify } from 'yaml';
import { eventually } from '../../support/eventually.ts';

const run = promisify(execFile);
const file = (path: string): string => fileURLToPath(new URL(`../../../${path}`, import.meta.url));

/**
 * The scrape interval, instead of 15 s, because the test does not last an hour. Queries over longer
 * ranges are not changed.
 */
export const scrapeEveryS = 1;

export type Alert = {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly state: string;
};
export type Rule = { readonly name: string; readonly health: string; readonly lastError?: string };
export type Series = {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [at: number, value: string];
};
export type Prometheus = AsyncDisposable & {
  /**
   * Returns the health of each instance of the job `offhook`: `up`, or the error of the last
   * scrape.
   */
  targets(): Promise<ReadonlyMap<string, string>>;
  rules(): Promise<readonly Rule[]>;
  firing(): Promise<readonly Alert[]>;
  query(expr: string): Promise<readonly Series[]>;
  /**
   * Returns the values of a label, as `label_values(metric, label)` of a dashboard's variable does.
   */
  labelValues(metric: string, label: string): Promise<readonly string[]>;
};

/**
 * Checks the rules and runs their tests.
 *
 * @throws Error with the output of `promtool` if it rejects a file.
 */
export async function checkFiles(): Promise<void> {
  await run('promtool', ['check', 'rules', file('.docker/prometheus-rules.yml')]);
  await run('promtool', ['test', 'rules', file('test/release/metrics/prometheus-rules.yml')]);
}

export async function startPrometheus(targets: readonly string[]): Promise<Prometheus> {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-prometheus-'));
  const config = await writeConfig(folder, targets);
  await run('promtool', ['check', 'config', config]);
  const port = await freePort();
  const child = spawn(
    'prometheus',
    [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=warn',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let output = '';
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const base = `http://127.0.0.1:${port}`;
  const stop = async (): Promise<void> => {
    await end(child);
    await rm(folder, { recursive: true, force: true });
  };
  const isReady = async (): Promise<boolean> => {
    if (child.exitCode !== null) throw new Error(`Prometheus ended: ${output}`);
    return (await fetch(`${base}/-/ready`).catch(() => undefined))?.ok === true;
  };
  try {
    await eventually(isReady, 'Prometheus is ready', 60_000);
  } catch (error) {
    await stop();
    throw error;
  }
  return { ...clientOf(base), [Symbol.asyncDispose]: stop };
}

/**
 * Writes the shipped configuration with the targets and intervals of the test, and the shipped
 * rules without their `for`.
 */
async function writeConfig(folder: string, targets: readonly string[]): Promise<string> {
  const shipped = parse(await readFile(file('.docker/prometheus.yml'), 'utf8')) as {
    readonly scrape_configs: readonly object[];
  };
  const rules = await readFile(file('.docker/prometheus-rules.yml'), 'utf8');
  const rulesFile = join(folder, 'rules.yml');
  await writeFile(rulesFile, rules.replace(/^ +for: .*\n/gm, ''));
  const every = `${scrapeEveryS}s`;
  const config = {
    ...shipped,
    global: { scrape_interval: every, evaluation_interval: every },
    rule_files: [rulesFile],
    scrape_configs: shipped.scrape_configs.map((job) => ({
      ...job,
      static_configs: [{ targets }],
    })),
  };
  const path = join(folder, 'prometheus.yml');
  await writeFile(path, stringify(config));
  return path;
}

function clientOf(base: string): Omit<Prometheus, typeof Symbol.asyncDispose> {
  const get = async (path: string, query: Record<string, string> = {}): Promise<unknown> => {
    const response = await fetch(`${base}/api/v1/${path}?${new URLSearchParams(query).toString()}`);
    const body = (await response.json()) as { status: string; data: unknown; error?: string };
    if (body.status !== 'success') throw new Error(`${path}: ${body.error}: ${query['query']}`);
    return body.data;
  };
  return {
    async targets() {
      const { activeTargets } = (await get('targets')) as {
        readonly activeTargets: readonly {
          readonly labels: Readonly<Record<string, string>>;
          readonly health: string;
          readonly lastError: string;
        }[];
      };
      return new Map(
        activeTargets.map(({ labels, health, lastError }) => [
          labels['instance'] ?? '',
          lastError || health,
        ]),
      );
    },
    async rules() {
      const { groups } = (await get('rules')) as {
        readonly groups: readonly { readonly rules: readonly Rule[] }[];
      };
      return groups.flatMap((group) => group.rules);
    },
    async firing() {
      const { alerts } = (await get('alerts')) as { readonly alerts: readonly Alert[] };
      return alerts.filter(({ state }) => state === 'firing');
    },
    async query(expr) {
      return ((await get('query', { query: expr })) as { readonly result: readonly Series[] })
        .result;
    },
    async labelValues(metric, label) {
      return (await get(`label/${label}/values`, { 'match[]': metric })) as readonly string[];
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await exited;
}
