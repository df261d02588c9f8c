// The drachtio-servers of DRACHTIO_URL: there, and with the secret that they are given.

import type { Config } from '../config.ts';
import { probeEngine } from '../sip/engine/engine-probe.ts';
import {
  type Check,
  connectTimeoutMs,
  type Finding,
  failed,
  ok,
  skipped,
  warning,
} from './check.ts';

export function drachtioCheck({ drachtioServers }: Pick<Config, 'drachtioServers'>): Check {
  const run = async (): Promise<Finding> => {
    if (drachtioServers === undefined) return skipped('the embedded SIP engine takes its place');
    const problems = await Promise.all(
      drachtioServers.map(async (server) => {
        const problem = await probeEngine(server, connectTimeoutMs);
        return problem === undefined ? [] : [`${server.host}:${server.port}: ${problem}`];
      }),
    ).then((found) => found.flat());
    if (problems.length === 0) return ok(`${drachtioServers.length} connected`);
    const told = `DRACHTIO_URL: ${problems.join('; ')}`;
    // Calls go over those that are there.
    return problems.length < drachtioServers.length ? warning(told) : failed(told);
  };
  return { name: 'drachtio', isAwaited: true, run };
}
