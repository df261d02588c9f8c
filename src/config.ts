// Reads the environment, which no other module does. All variables are optional, and by default
// everything is embedded. The resulting configuration is frozen. `src/config` describes the
// variables.

import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { maxHeldQueueTimeoutMs, maxRingTimeoutMs } from './calls/dialout-limits.ts';
import { type Environment, environment } from './config/environment.ts';
import { bucketOf } from './config/recording-variables.ts';
import { secretVariables } from './config/secret-variables.ts';
import { describeIssues } from './lib/issues.ts';
import { natsAccess } from './lib/nats-variables.ts';
import { secretsOf } from './lib/secret-files.ts';
import type { StoreTarget } from './recording/store/recording-store.ts';

export type DrachtioServer = {
  readonly host: string;
  readonly port: number;
  readonly secret: string;
};

export type Config = Readonly<ReturnType<typeof resolveDefaults>>;

/**
 * Reads and checks the configuration.
 * @throws Error that lists every bad variable
 */
export function loadConfig(
  env: Readonly<Record<string, string | undefined>> = process.env,
): Config {
  // Compose files and shells pass unset variables as empty strings.
  const setVariables = Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== undefined && value !== ''),
  );
  const { secrets, problems } = secretsOf(secretVariables, setVariables);
  const parsed = environment.safeParse({ ...setVariables, ...secrets }, { error: describeIssues });
  const issues = parsed.success ? [] : parsed.error.issues;
  const lines = [
    ...problems,
    ...issues.map(
      ({ path: [name], message }) => `${sourceOf(String(name), setVariables)}: ${message}`,
    ),
  ];
  if (!parsed.success || problems.length > 0)
    throw new Error(`Bad configuration:\n  ${lines.join('\n  ')}`);
  return Object.freeze(resolveDefaults(parsed.data));
}

/**
 * Builds the configuration from these settings alone. From the environment it uses only PATH and
 * NATS_SERVER_BIN, to find programs.
 */
export function loadConfigFrom(settings: Readonly<Record<string, string>>): Config {
  const { PATH, NATS_SERVER_BIN } = process.env;
  return loadConfig({ PATH, NATS_SERVER_BIN, ...settings });
}

/** Names the file too, if the variable's value comes from one. */
function sourceOf(name: string, env: Readonly<Record<string, string | undefined>>): string {
  const path = env[`${name}_FILE`];
  return path === undefined ? name : `${name}_FILE: ${path}`;
}

function httpOf(env: Environment) {
  return {
    host: env.HTTP_HOST,
    port: env.HTTP_PORT,
    publicUrl: env.PUBLIC_URL,
    trustedProxies: (env.TRUSTED_PROXIES ?? []) as readonly string[],
  };
}

function natsOf(env: Environment) {
  return {
    url: env.NATS_URL,
    access: natsAccess(env),
    prefix: env.NATS_PREFIX,
    replicas: env.NATS_REPLICAS === undefined ? undefined : Number(env.NATS_REPLICAS),
    maxBytes: env.NATS_MAX_BYTES,
    serverProgram: env.NATS_SERVER_BIN,
    searchPath: env.PATH,
  };
}

function mediaOf(env: Environment) {
  const host = env.MEDIA_HOST ?? env.SIP_HOST;
  return {
    host,
    publicHost: env.MEDIA_PUBLIC_HOST ?? host,
    portMin: env.MEDIA_PORT_MIN,
    portMax: env.MEDIA_PORT_MAX,
    workers: env.MEDIA_WORKERS,
    inactivityTimeoutMs: env.RTP_INACTIVITY_TIMEOUT_MS,
    silenceIntervalMs: env.RTP_SILENCE_INTERVAL_MS,
  };
}

function callsOf(env: Environment) {
  return {
    maxDurationMs: env.MAX_CALL_DURATION_MS,
    maxConcurrent: env.MAX_CONCURRENT_CALLS,
    queueTimeoutMs: env.QUEUE_TIMEOUT_MS,
    maxHeldPerAccount: env.MAX_HELD_CALLS_PER_ACCOUNT,
    /** The longest time between a call's acceptance and its end. */
    maxLifeMs:
      Math.max(env.QUEUE_TIMEOUT_MS, maxHeldQueueTimeoutMs) +
      maxRingTimeoutMs +
      env.MAX_CALL_DURATION_MS,
  };
}

function streamsOf(env: Environment) {
  const allowedNetworks = env.STREAM_ALLOWED_NETWORKS ?? env.NOTIFY_ALLOWED_NETWORKS;
  return {
    allowedNetworks: allowedNetworks as readonly string[] | undefined,
    bufferBytes: env.STREAM_BUFFER_MB * 1_000_000,
  };
}

/** @throws Error if the bucket's credentials are missing */
function storeOf(env: Environment, dataDir: string): StoreTarget {
  const bucket = bucketOf(env.RECORDING_STORE ?? '');
  if (bucket === undefined) {
    return { kind: 'folder', path: resolve(env.RECORDING_STORE ?? join(dataDir, 'recordings')) };
  }
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = env;
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    throw new Error(
      'Bad configuration:\n  RECORDING_STORE: a bucket needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
    );
  }
  return {
    ...{ kind: 's3', ...bucket, endpoint: env.S3_ENDPOINT, region: env.S3_REGION },
    ...{ accessKeyId, secretAccessKey, sessionToken: env.AWS_SESSION_TOKEN },
  };
}

function tracingOf(env: Environment) {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: base, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: traces } = env;
  const url = traces ?? (base === undefined ? undefined : `${base.replace(/\/$/, '')}/v1/traces`);
  return { url, serviceName: env.OTEL_SERVICE_NAME };
}

function resolveDefaults(env: Environment) {
  if (env.MEDIA_PORT_MIN >= env.MEDIA_PORT_MAX)
    throw new Error('Bad configuration:\n  MEDIA_PORT_MIN: must be below MEDIA_PORT_MAX');
  if (env.DATABASE_URL !== undefined && env.SECRETS_KEY === undefined) {
    throw new Error(
      'Bad configuration:\n  SECRETS_KEY: is required with DATABASE_URL (32 bytes, e.g. openssl rand -hex 32)',
    );
  }
  if (env.STT_STRICT === 'true' && env.STT_DEFAULT_PROVIDER !== undefined) {
    throw new Error('Bad configuration:\n  STT_STRICT: contradicts STT_DEFAULT_PROVIDER');
  }
  const dataDir = resolve(env.DATA_DIR);
  const nodeId = env.NODE_ID ?? hostname();
  return {
    http: httpOf(env),
    tokenMaxTtlS: env.TOKEN_MAX_TTL_S,
    dataDir,
    runtimeFile: join(dataDir, 'runtime.json'),
    databaseUrl: env.DATABASE_URL,
    nats: natsOf(env),
    drachtioServers: env.DRACHTIO_URL as readonly DrachtioServer[] | undefined,
    sip: {
      host: env.SIP_HOST,
      port: env.SIP_PORT,
      allowedNetworks: env.SIP_ALLOWED_NETWORKS as readonly string[] | undefined,
    },
    dnsServers: env.DNS_SERVERS as readonly string[] | undefined,
    trunksFile: env.TRUNKS_FILE,
    sttProvidersFile: env.STT_PROVIDERS_FILE,
    sttDefaultProvider: env.STT_DEFAULT_PROVIDER,
    isSttStrict: env.STT_STRICT === 'true',
    sandbox: env.SANDBOX,
    media: mediaOf(env),
    calls: callsOf(env),
    notifier: { allowedNetworks: env.NOTIFY_ALLOWED_NETWORKS as readonly string[] | undefined },
    streams: streamsOf(env),
    recording: {
      store: storeOf(env, dataDir),
      spool: resolve(env.RECORDING_SPOOL ?? join(dataDir, 'recording-spool')),
      retentionDays: env.RECORDING_RETENTION_DAYS,
    },
    tracing: tracingOf(env),
    secretsKey: env.SECRETS_KEY,
    previousSecretsKey: env.SECRETS_KEY_PREVIOUS,
    nodeId,
    leaseMs: env.NODE_LEASE_MS,
    /**
     * Identifies this run of this node. We store it as each call's owner, so that other nodes know
     * which calls to end if this process is lost.
     */
    ownerId: `${nodeId}/${randomUUID().slice(0, 8)}`,
    retention: {
      eventDays: env.EVENT_RETENTION_DAYS,
      recordDays: env.RECORD_RETENTION_DAYS,
      contextHours: env.CONTEXT_RETENTION_HOURS,
      historyDays: env.HISTORY_RETENTION_DAYS,
    },
    shutdownTimeoutMs: env.SHUTDOWN_TIMEOUT_MS ?? 30_000,
    /** Shorter, because a developer at a terminal doesn't want to wait for sandbox calls. */
    terminalShutdownTimeoutMs: env.SHUTDOWN_TIMEOUT_MS ?? 5_000,
    /** Undefined selects the default, i.e. true on a terminal. */
    logCalls: env.LOG_CALLS === undefined ? undefined : env.LOG_CALLS === 'true',
    shutdownDelayMs: env.SHUTDOWN_DELAY_MS,
    logLevel: env.LOG_LEVEL,
  };
}

/**
 * Returns the rows for the table in sip-config/README.md. A test compares the two.
 * @internal
 */
export function configurationTable(): readonly {
  name: string;
  fallback: string;
  meaning: string;
}[] {
  const documented = Object.entries(environment.shape).filter(
    ([, schema]) => schema.description !== undefined,
  );
  return documented.map(([name, schema]) => {
    const fallback = schema instanceof z.ZodDefault ? String(schema.def.defaultValue) : '';
    return { name, fallback, meaning: schema.description ?? '' };
  });
}

/**
 * Reads trunk passwords and speech-to-text keys. Their files contain only the variable names, never
 * the secrets.
 *
 * @throws Error with one line for each secret's file that cannot be used
 */
export function readSecrets(
  names: readonly string[],
  env: Readonly<Record<string, string | undefined>> = process.env,
): Readonly<Record<string, string | undefined>> {
  const { secrets, problems } = secretsOf(names, env);
  if (problems.length > 0) throw new Error(problems.join('\n'));
  return secrets;
}
