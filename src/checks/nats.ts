// The nats-server program for our own server, or the NATS of NATS_URL with its JetStream.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Config } from '../config.ts';
import { findNatsServer } from '../embedded/nats/nats-program.ts';
import { connectEvents } from '../events/connection.ts';
import { silentLogger } from '../lib/logger.ts';
import { type Check, type Finding, failed, ok, skipped } from './check.ts';
import { reasonOf } from './reasons.ts';

const run = promisify(execFile);
/** It answers in milliseconds; one that is read from a cold disk takes its time. */
const programTimeoutMs = 10_000;

export function natsServerCheck({ nats }: Pick<Config, 'nats'>): Check {
  const find = async (): Promise<Finding> => {
    if (nats.url !== undefined) return skipped('not needed: NATS_URL is set');
    const program = await findNatsServer(nats.serverProgram, nats.searchPath);
    try {
      const { stdout } = await run(program, ['--version'], { timeout: programTimeoutMs });
      return ok(`${program}, ${stdout.trim()}`);
    } catch (error) {
      return failed(`NATS_SERVER_BIN: ${program} cannot be run: ${reasonOf(error)}`);
    }
  };
  return { name: 'nats-server', run: find };
}

/** `ownUrl`: of the nats-server of a gateway that runs here. */
export function natsCheck({ nats }: Pick<Config, 'nats'>, ownUrl?: string): Check {
  const url = nats.url ?? ownUrl;
  const connect = async (): Promise<Finding> => {
    if (url === undefined) return skipped('a private one, which starts with the gateway');
    const shown = url.replaceAll(/\/\/[^@/,]*@/g, '//');
    try {
      const connection = await connectEvents({
        ...{ url, prefix: nats.prefix, name: 'offhook check', logger: silentLogger },
        firstConnectTimeoutMs: 0,
      });
      const { version } = connection.nats.info ?? {};
      await connection.close();
      return ok(`${shown}, version ${version ?? 'unknown'}, with JetStream`);
    } catch (error) {
      return failed(`NATS_URL: ${shown} cannot be used: ${reasonOf(error)}`);
    }
  };
  return { name: 'NATS', isAwaited: true, run: connect };
}
