// Gateways with people who talk until they are hung up, for the runs that count who is.

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { AppCredentials } from '../../src/store/apps/apps.ts';
import { createAppIn } from '../support/apps.ts';
import type { Cluster } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import { type FarCall, numberFor } from '../support/far-end.ts';
import type { GatewayProcess } from '../support/gateway-process.ts';

export type Talking = {
  readonly cluster: Cluster;
  /** How many gateways run. */
  readonly gateways: number;
  /** How many people talk, over all gateways. */
  readonly people: number;
  readonly variables: Readonly<Record<string, string>>;
  /** The folder of another build. Default: this tree. */
  readonly build?: string;
};

/** What outages cost the people who talk. */
export type Harm = {
  /** The outages during which at least one call was hung up. */
  readonly harmful: number;
  readonly talking: number;
  readonly hungUp: number;
  /** Gateways that exited because another gateway had taken over their calls. */
  readonly ended: number;
};

const upTimeoutMs = 60_000;

/**
 * A call is up from its ACK to its end. The gateway sends the ACK once it has stored the answer. It
 * hangs up a call whose answer it cannot store because SQL is away.
 */
export const isUp = ({ acknowledgedAt, endedAt }: FarCall): boolean =>
  acknowledgedAt !== undefined && endedAt === undefined;

let numbers = 0;

/** Starts the gateways that do not run, and places calls until as many people talk as wanted. */
export async function fill(
  { cluster, gateways: count, people, variables, build }: Talking,
  gateways: Map<string, GatewayProcess>,
): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const name = `node-${index + 1}`;
    if (gateways.has(name)) continue;
    gateways.set(name, await cluster.startNode(name, variables, build));
  }
  const nodes = [...gateways.values()];
  for (let up = cluster.farEnd.calls.filter(isUp).length; up < people; up += 1) {
    const target = `tel:+${numberFor('stay', 0, numbers)}`;
    await nodes[up % nodes.length]?.dialer.dial({ target, notifyurl: cluster.receiver.url });
    numbers += 1;
  }
  await eventually(
    () => cluster.farEnd.calls.filter(isUp).length >= people,
    'people talk',
    upTimeoutMs,
  );
}

/** Removes the gateways that have exited. Returns how many there were. */
export function removeEnded(gateways: Map<string, GatewayProcess>): number {
  const ended = [...gateways].filter(
    ([, { child }]) => child.exitCode !== null || child.signalCode !== null,
  );
  for (const [name] of ended) gateways.delete(name);
  return ended.length;
}

/**
 * Returns a function that creates an app and the tables with the code of a build, because each
 * version has its own schema.
 */
export function appCreatorOf(build: string | undefined): typeof createAppIn {
  if (build === undefined) return createAppIn;
  return async (databaseUrl, secretsKey) => {
    const command = [join(build, 'cli.js'), 'apps', 'create', '--name', 'test'];
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [...command, '--account', 'test'],
      {
        env: {
          PATH: process.env['PATH'],
          DATABASE_URL: databaseUrl,
          SECRETS_KEY: secretsKey,
          LOG_LEVEL: 'error',
        },
      },
    );
    return JSON.parse(stdout) as AppCredentials;
  };
}
