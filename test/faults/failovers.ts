// Fails PostgreSQL over while people talk, and counts the calls that are hung up. The primary is
// killed, nothing serves for some seconds, and then the synchronous standby is promoted. The
// gateways reach the primary through haproxy.

import { setTimeout as pause } from 'node:timers/promises';
import { startCluster } from '../support/cluster.ts';
import type { GatewayProcess } from '../support/gateway-process.ts';
import type { PostgresPair } from '../support/postgres-pair.ts';
import { appCreatorOf, fill, type Harm, isUp, removeEnded, type Talking } from './talking.ts';

export type FailoverOptions = {
  readonly pair: PostgresPair;
  /** How long nothing serves, in seconds, per length. */
  readonly lengths: readonly number[];
  readonly runsEach: number;
  readonly gateways: number;
  readonly people: number;
  /** The folder of another build. Default: this tree. */
  readonly build?: string;
  readonly log: (line: string) => void;
};

export type FailoverReport = Harm & { readonly seconds: number; readonly runs: number };

/**
 * How long to wait after a fail-over. A node that wrongly declares others lost does so within two
 * of the default leases, which are used here.
 */
const aftermathMs = 20_000;

export async function runFailovers(options: FailoverOptions): Promise<readonly FailoverReport[]> {
  const { pair, gateways, people, build } = options;
  await using cluster = await startCluster({
    databaseUrl: pair.url,
    createApp: appCreatorOf(build),
  });
  const talking: Talking = {
    ...{ cluster, gateways, people, variables: {} },
    ...(build !== undefined && { build }),
  };
  const running = new Map<string, GatewayProcess>();
  const reports: FailoverReport[] = [];
  for (const seconds of options.lengths) {
    reports.push(await failOverFor(seconds, options, talking, running));
  }
  return reports;
}

async function failOverFor(
  seconds: number,
  { pair, runsEach, log }: FailoverOptions,
  talking: Talking,
  running: Map<string, GatewayProcess>,
): Promise<FailoverReport> {
  const report = { seconds, runs: runsEach, harmful: 0, talking: 0, hungUp: 0, ended: 0 };
  for (let index = 0; index < runsEach; index += 1) {
    await fill(talking, running);
    const people = talking.cluster.farEnd.calls.filter(isUp);
    const from = performance.now();
    await pair.primary.kill();
    await pause(seconds * 1_000 - (performance.now() - from));
    await pair.promote();
    await pair.untilReachable();
    const awayS = (performance.now() - from) / 1_000;
    await pair.rebuild();
    await pause(aftermathMs);
    const hungUp = people.filter((call) => !isUp(call)).length;
    const ended = removeEnded(running);
    report.harmful += hungUp === 0 ? 0 : 1;
    report.talking += people.length;
    report.hungUp += hungUp;
    report.ended += ended;
    log(
      `${seconds} s, run ${index + 1}: away for ${awayS.toFixed(1)} s, ${hungUp} of ${people.length} hung up, ${ended} gateways ended`,
    );
  }
  return report;
}
