// The checks that the gateway runs when it starts, before it opens anything. All problems are
// reported together, and each of them names its variable.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { readSpeechToText } from '../amd/stt/provider-file.ts';
import { type Config, readSecrets } from '../config.ts';
import { findNatsServer } from '../embedded/nats/nats-program.ts';
import { connectEvents } from '../events/connection.ts';
import { checkAccess, withoutCredentials } from '../events/nats-access.ts';
import { NatsUnavailable } from '../events/nats-away.ts';
import { errorForPeople } from '../lib/error-for-log.ts';
import { type Logger, silentLogger } from '../lib/logger.ts';
import { probeEngine } from '../sip/engine/engine-probe.ts';
import { readTrunkFile, sandboxIsOn, trunksOf } from '../sip/trunks/trunk-file.ts';
import {
  type Check,
  type CheckResult,
  connectTimeoutMs,
  type Finding,
  failed,
  ok,
  runChecks,
  skipped,
  startTimeoutMs,
  warning,
} from './check.ts';
import { dataFolderCheck, diskCheck } from './data-folder.ts';
import { clockCheck, databaseCheck } from './database.ts';
import { portsCheck } from './ports.ts';
import { reasonOf } from './reasons.ts';
import { recordingsCheck } from './recordings.ts';

/**
 * Checks the files that the configuration refers to.
 *
 * @throws Error with one line for each mistake in these files
 */
export async function checkConfiguredFiles(config: Config): Promise<void> {
  throwFailures(await runChecks(fileChecksOf(config), startTimeoutMs));
}

/**
 * Checks DATA_DIR, and creates the folder if it's missing.
 *
 * @throws Error that names DATA_DIR if the folder can't be created or isn't writable
 */
export async function checkDataFolder(config: Config): Promise<void> {
  const check = dataFolderCheck(config.dataDir, { keep: true });
  throwFailures(await runChecks([check], startTimeoutMs));
}

/**
 * Runs the other checks. If a check with `isAwaited` fails, we only log a warning.
 *
 * @throws Error with one line for each failed check
 */
export async function checkBeforeStart(config: Config, logger: Logger): Promise<void> {
  const results = await runChecks(checksOf(config), startTimeoutMs);
  const awaited = results.filter((result) => result.isAwaited && result.state === 'failed');
  const warnings = results.filter(({ state }) => state === 'warning');
  for (const { name, detail } of [...awaited, ...warnings]) {
    logger.warn({ check: name, detail }, 'a check before the start reported a problem');
  }
  throwFailures(results.filter((result) => !result.isAwaited));
}

export function fileChecksOf(config: Config): readonly Check[] {
  return [trunksCheck(config), speechToTextCheck(config), natsAccessCheck(config)];
}

/**
 * Returns all checks except the file checks and the data folder check. `running` is the gateway
 * that is already running here, if any, and is therefore using the ports.
 */
export function checksOf(
  config: Config,
  running?: { readonly natsUrl?: string | undefined },
): readonly Check[] {
  const embedded = config.databaseUrl === undefined || config.nats.url === undefined;
  return [
    diskCheck(config.dataDir, { embedded }),
    portsCheck(config, running !== undefined),
    natsServerCheck(config),
    natsCheck(config, running?.natsUrl),
    drachtioCheck(config),
    databaseCheck(config),
    clockCheck(config),
    recordingsCheck(config),
  ];
}

function throwFailures(results: readonly CheckResult[]): void {
  const failures = results.filter(({ state }) => state === 'failed');
  if (failures.length === 0) return;
  throw new Error(failures.map(({ detail }) => detail).join('\n  '));
}

/** Checks that the drachtio-servers in DRACHTIO_URL are reachable and accept their secrets. */
export function drachtioCheck({ drachtioServers }: Pick<Config, 'drachtioServers'>): Check {
  const run = async (): Promise<Finding> => {
    if (drachtioServers === undefined) return skipped('the embedded SIP engine is used instead');
    const problems = await Promise.all(
      drachtioServers.map(async (server) => {
        const problem = await probeEngine(server, connectTimeoutMs);
        return problem === undefined ? [] : [`${server.host}:${server.port}: ${problem}`];
      }),
    ).then((found) => found.flat());
    if (problems.length === 0) return ok(`${drachtioServers.length} connected`);
    const detail = `DRACHTIO_URL: ${problems.join('; ')}`;
    // This is only a warning, because calls use the servers that we can reach.
    return problems.length < drachtioServers.length ? warning(detail) : failed(detail);
  };
  return { name: 'drachtio', isAwaited: true, run };
}

const run = promisify(execFile);
/**
 * nats-server usually prints its version within milliseconds, but reading it from a cold disk takes
 * longer.
 */
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

/** Checks the NATS server at NATS_URL. Default: `ownUrl`, the running gateway's nats-server. */
export function natsCheck({ nats }: Pick<Config, 'nats'>, ownUrl?: string): Check {
  const url = nats.url ?? ownUrl;
  const connect = async (): Promise<Finding> => {
    if (url === undefined) return skipped('a private server, which starts with the gateway');
    const shown = withoutCredentials(url);
    try {
      const connection = await connectEvents({
        ...{ url, access: nats.access, prefix: nats.prefix },
        ...{ name: 'offhook check', logger: silentLogger },
        ...{ firstConnectTimeoutMs: 0, connectTimeoutMs },
      });
      const { version } = connection.nats.info ?? {};
      await connection.close();
      return ok(`${shown}, version ${version ?? 'unknown'}, with JetStream`);
    } catch (error) {
      const refusal = error instanceof NatsUnavailable ? error.refusal : undefined;
      const reason = refusal ?? reasonOf(error);
      return failed(`NATS_URL: ${shown} cannot be used: ${reason}`);
    }
  };
  return { name: 'NATS', isAwaited: true, run: connect };
}

/** Checks the credentials and certificates for NATS, as far as that's possible without a server. */
function natsAccessCheck({ nats }: Pick<Config, 'nats'>): Check {
  return {
    name: 'NATS credentials',
    run: () =>
      asFindingIfThrown(() => {
        const files = Object.values(nats.access).filter((value) => value !== undefined);
        checkAccess(nats.access);
        return Promise.resolve(
          files.length === 0 ? skipped('no files or keys are set') : ok('can be read'),
        );
      }),
  };
}

/**
 * Checks TRUNKS_FILE for mistakes. This check runs first, because it doesn't need any port or
 * network.
 */
function trunksCheck(config: Pick<Config, 'trunksFile' | 'sandbox' | 'drachtioServers'>): Check {
  return {
    name: 'trunks',
    run: () =>
      asFindingIfThrown(async () => {
        const file = await readTrunkFile(config);
        if (file === undefined) return skipped('TRUNKS_FILE is not set: no carrier is configured');
        // We only need the sandbox trunk's name here, because the file must not use the same name.
        const sandbox = sandboxIsOn(config, file) ? { host: '127.0.0.1', port: 5_060 } : undefined;
        const trunks = trunksOf(config, { file, sandbox, secrets: readSecrets });
        return ok(`${file.name}: ${trunks.all.map(({ name }) => name).join(', ')}`);
      }),
  };
}

function speechToTextCheck(
  config: Pick<Config, 'sttProvidersFile' | 'sttDefaultProvider' | 'isSttStrict'>,
): Check {
  return {
    name: 'speech-to-text',
    run: () =>
      asFindingIfThrown(async () => {
        const { providers } = await readSpeechToText(config, readSecrets);
        return providers.size === 0
          ? skipped('STT_PROVIDERS_FILE is not set: words are estimated from the audio')
          : ok([...providers.keys()].join(', '));
      }),
  };
}

/**
 * Turns a thrown error into a failed result. It has one line per mistake, including the code, e.g.
 * ENOENT.
 */
async function asFindingIfThrown(run: () => Promise<Finding>): Promise<Finding> {
  try {
    return await run();
  } catch (error) {
    return failed(errorForPeople(error).replaceAll(/\n */g, '\n  '));
  }
}
