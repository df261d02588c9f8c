// The only reader of the environment. Every variable is optional; what is absent gets the embedded default. The result
// is frozen, and `describeConfig` prints it with secrets masked.

import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import {
  drachtioUrl,
  natsUrl,
  networks,
  port,
  postgresUrl,
  timerMs,
  trustedNetworks,
} from './lib/config-values.ts';
import { describeIssues } from './lib/issues.ts';
import { longestTokenMaxTtlS, shortestTokenMaxTtlS } from './store/apps/app-credentials.ts';
import { keyForm, keyOf } from './store/secrets.ts';

const environment = z.object({
  HTTP_HOST: z.string().default('127.0.0.1').describe('address that the API listens on'),
  HTTP_PORT: port.default(3000).describe('port of the API; 0 takes a free one'),
  PUBLIC_URL: z
    .url('must be an absolute URL, e.g. https://offhook.example.com')
    .optional()
    .describe('base URL under which callers reach the API'),
  TRUSTED_PROXIES: trustedNetworks
    .optional()
    .describe('networks of the proxies whose X-Forwarded-For says who the client is; absent: none'),
  TOKEN_MAX_TTL_S: z.coerce
    .number()
    .int()
    .min(shortestTokenMaxTtlS)
    .max(longestTokenMaxTtlS)
    .default(86_400)
    .describe('how long the tokens of apps that are created from now on may live'),
  DATA_DIR: z
    .string()
    .default('.offhook')
    .describe('folder of the embedded parts and of runtime.json'),
  DATABASE_URL: postgresUrl.optional().describe('PostgreSQL; absent: PGlite under DATA_DIR'),
  NATS_URL: natsUrl
    .optional()
    .describe('NATS with JetStream; absent: a private nats-server under DATA_DIR'),
  NATS_PREFIX: z
    .string()
    .regex(/^[A-Za-z0-9_-]+$/, 'must be letters, digits, _ and - only')
    .default('offhook')
    .describe('first token of subjects, prefix of streams'),
  NATS_SERVER_BIN: z
    .string()
    .optional()
    .describe('the nats-server program; absent: looked for on PATH'),
  DRACHTIO_URL: drachtioUrl
    .optional()
    .describe(
      'tcp://:secret@host:9022, several separated by commas; absent: the embedded SIP engine',
    ),
  SIP_HOST: z.string().default('127.0.0.1').describe('address of the embedded SIP engine'),
  SIP_PORT: port
    .default(5060)
    .describe('port of the embedded SIP engine, UDP and TCP; 0 takes a free one'),
  SIP_ALLOWED_NETWORKS: networks
    .optional()
    .describe(
      'networks in which sip: targets may be dialled directly, or `none`; absent: loopback on a laptop (see NOTIFY_ALLOWED_NETWORKS) whose sandbox is on, else none',
    ),
  TRUNKS_FILE: z
    .string()
    .optional()
    .describe(
      'trunks.yaml, or `none`; absent: sip-config/trunks.yaml if it exists. Without one there is only the sandbox',
    ),
  STT_PROVIDERS_FILE: z
    .string()
    .optional()
    .describe('speech-to-text providers (yaml); absent: none, words are counted by ear'),
  STT_DEFAULT_PROVIDER: z
    .string()
    .optional()
    .describe(
      'the one of them that is used where a request names none of them; absent: its words are counted by ear',
    ),
  STT_STRICT: z
    .enum(['true', 'false'])
    .default('false')
    .describe('true: a request that names a provider that is not configured is a 400'),
  SANDBOX: z
    .enum(['on', 'off'])
    .optional()
    .describe('the sandbox carrier; absent: on while no trunks are configured'),
  MEDIA_HOST: z.string().optional().describe('address of the RTP sockets; absent: SIP_HOST'),
  MEDIA_PUBLIC_HOST: z.string().optional().describe('address written into SDP; absent: MEDIA_HOST'),
  MEDIA_PORT_MIN: port.default(20_000).describe('first RTP port'),
  MEDIA_PORT_MAX: port.default(29_999).describe('last RTP port'),
  MEDIA_WORKERS: z.coerce
    .number()
    .int()
    .min(1)
    .max(64)
    .default(1)
    .describe('worker threads for RTP and detection'),
  RTP_INACTIVITY_TIMEOUT_MS: timerMs
    .min(1_000)
    .default(30_000)
    .describe('an answered call without RTP for this long ends; not while on hold'),
  RTP_SILENCE_INTERVAL_MS: timerMs
    .min(20)
    .max(5_000)
    .default(200)
    .describe(
      'while our side is silent (no bot, message or ringback) a packet of silence is sent this often, after the first second; 20: always',
    ),
  MAX_CALL_DURATION_MS: timerMs
    .min(1_000)
    .default(7_200_000)
    .describe('longest call; what `maxDurationMs` of a request may be at most'),
  MAX_CONCURRENT_CALLS: z.coerce
    .number()
    .int()
    .min(1)
    .default(2_000)
    .describe('calls of this process at once; more wait in the queue'),
  QUEUE_TIMEOUT_MS: z.coerce
    .number()
    .int()
    .min(1_000)
    .default(300_000)
    .describe('a request that waited this long is not dialled any more'),
  NOTIFY_ALLOWED_NETWORKS: networks
    .optional()
    .describe(
      'private networks that notifications may be sent to, or `none`; absent: loopback on a laptop (HTTP_HOST and PUBLIC_URL local, no trunks, no DRACHTIO_URL, no DATABASE_URL), else none',
    ),
  STREAM_ALLOWED_NETWORKS: networks
    .optional()
    .describe(
      'private networks in which bots may take audio streams, or `none`; absent: NOTIFY_ALLOWED_NETWORKS',
    ),
  STREAM_BUFFER_MB: z.coerce
    .number()
    .int()
    .min(1)
    .max(65_536)
    .default(256)
    .describe('audio of all bots that is still to be played, in this process'),
  SECRETS_KEY: z
    .string()
    .refine((text) => keyOf(text) !== undefined, keyForm)
    .optional()
    .describe('32 bytes as 64 hex digits or base64; required with DATABASE_URL'),
  NODE_ID: z
    .string()
    .regex(/^[A-Za-z0-9._-]{1,64}$/, 'must be up to 64 letters, digits, . _ -')
    .optional()
    .describe('name of this process; absent: host name'),
  NODE_LEASE_MS: timerMs
    .min(1_000)
    .default(8_000)
    .describe(
      'a node that does not renew its lease for this long is lost, and others end its calls; after an outage of the database, and after a start, they wait for as long again',
    ),
  EVENT_RETENTION_DAYS: z.coerce
    .number()
    .min(0.01)
    .default(30)
    .describe(
      'how long calls are kept; their events and notifications go by whole days, up to a day later',
    ),
  CONTEXT_RETENTION_HOURS: z.coerce
    .number()
    .min(0.01)
    .default(24)
    .describe('how long a call context is kept after its last change'),
  HISTORY_RETENTION_DAYS: z.coerce
    .number()
    .min(0.01)
    .default(365)
    .describe(
      'how long messages of the conversation history are kept; published conversations and test runs, after their last change',
    ),
  SHUTDOWN_TIMEOUT_MS: timerMs
    .min(0)
    .optional()
    .describe(
      'how long SIGTERM lets running calls finish; the process has ended 5 s after that at the latest; absent: 30000, and 5000 on a terminal',
    ),
  SHUTDOWN_DELAY_MS: timerMs
    .min(0)
    .default(0)
    .describe(
      'how long SIGTERM goes on taking requests while /ready says no, so that a load balancer leaves this process out first',
    ),
  // Not ours to document: where nats-server is looked for.
  PATH: z.string().default(''),
  LOG_CALLS: z
    .enum(['true', 'false'])
    .optional()
    .describe(
      'a readable line for each step of a call and each attempt to notify its receiver; absent: on a terminal',
    ),
  OTEL_EXPORTER_OTLP_ENDPOINT: z
    .url('must be an absolute URL, e.g. http://127.0.0.1:4318')
    .optional()
    .describe(
      'an OpenTelemetry collector that takes OTLP over HTTP, e.g. http://127.0.0.1:4318; absent: no traces. OTEL_EXPORTER_OTLP_HEADERS is heeded',
    ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: z
    .url('must be an absolute URL')
    .optional()
    .describe('the same with its path, for traces alone; absent: /v1/traces below the other'),
  OTEL_SERVICE_NAME: z.string().default('offhook').describe('`service.name` of the traces'),
  LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe(
      'least severe level that is logged: trace, debug, info, warn, error, fatal or silent',
    ),
});

export type DrachtioServer = {
  readonly host: string;
  readonly port: number;
  readonly secret: string;
};

export type Config = Readonly<ReturnType<typeof resolveDefaults>>;

/** @throws Error that lists every variable that is wrong. */
export function loadConfig(
  env: Readonly<Record<string, string | undefined>> = process.env,
): Config {
  // An empty variable is how compose files and shells say "not set".
  const given = Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== undefined && value !== ''),
  );
  const parsed = environment.safeParse(given, { error: describeIssues });
  if (!parsed.success) {
    const lines = parsed.error.issues.map(
      ({ path, message }) => `  ${String(path[0])}: ${message}`,
    );
    throw new Error(`Bad configuration:\n${lines.join('\n')}`);
  }
  return Object.freeze(resolveDefaults(parsed.data));
}

/** These settings; of the environment only where programs are found. */
export function loadConfigOf(settings: Readonly<Record<string, string>>): Config {
  const { PATH, NATS_SERVER_BIN } = process.env;
  return loadConfig({ PATH, NATS_SERVER_BIN, ...settings });
}

function httpOf(env: z.infer<typeof environment>) {
  return {
    host: env.HTTP_HOST,
    port: env.HTTP_PORT,
    publicUrl: env.PUBLIC_URL,
    trustedProxies: (env.TRUSTED_PROXIES ?? []) as readonly string[],
  };
}

function callsOf(env: z.infer<typeof environment>) {
  return {
    maxDurationMs: env.MAX_CALL_DURATION_MS,
    maxConcurrent: env.MAX_CONCURRENT_CALLS,
    queueTimeoutMs: env.QUEUE_TIMEOUT_MS,
  };
}

function streamsOf(env: z.infer<typeof environment>) {
  const allowedNetworks = env.STREAM_ALLOWED_NETWORKS ?? env.NOTIFY_ALLOWED_NETWORKS;
  return {
    allowedNetworks: allowedNetworks as readonly string[] | undefined,
    bufferBytes: env.STREAM_BUFFER_MB * 1_000_000,
  };
}

function tracingOf(env: z.infer<typeof environment>) {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: base, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: traces } = env;
  const url = traces ?? (base === undefined ? undefined : `${base.replace(/\/$/, '')}/v1/traces`);
  return { url, serviceName: env.OTEL_SERVICE_NAME };
}

function resolveDefaults(env: z.infer<typeof environment>) {
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
  const mediaHost = env.MEDIA_HOST ?? env.SIP_HOST;
  const nodeId = env.NODE_ID ?? hostname();
  return {
    http: httpOf(env),
    tokenMaxTtlS: env.TOKEN_MAX_TTL_S,
    dataDir,
    runtimeFile: join(dataDir, 'runtime.json'),
    databaseUrl: env.DATABASE_URL,
    nats: {
      url: env.NATS_URL,
      prefix: env.NATS_PREFIX,
      serverProgram: env.NATS_SERVER_BIN,
      searchPath: env.PATH,
    },
    drachtioServers: env.DRACHTIO_URL as readonly DrachtioServer[] | undefined,
    sip: {
      host: env.SIP_HOST,
      port: env.SIP_PORT,
      allowedNetworks: env.SIP_ALLOWED_NETWORKS as readonly string[] | undefined,
    },
    trunksFile: env.TRUNKS_FILE,
    sttProvidersFile: env.STT_PROVIDERS_FILE,
    sttDefaultProvider: env.STT_DEFAULT_PROVIDER,
    isSttStrict: env.STT_STRICT === 'true',
    sandbox: env.SANDBOX,
    media: {
      host: mediaHost,
      publicHost: env.MEDIA_PUBLIC_HOST ?? mediaHost,
      portMin: env.MEDIA_PORT_MIN,
      portMax: env.MEDIA_PORT_MAX,
      workers: env.MEDIA_WORKERS,
      inactivityTimeoutMs: env.RTP_INACTIVITY_TIMEOUT_MS,
      silenceIntervalMs: env.RTP_SILENCE_INTERVAL_MS,
    },
    calls: callsOf(env),
    notifier: { allowedNetworks: env.NOTIFY_ALLOWED_NETWORKS as readonly string[] | undefined },
    streams: streamsOf(env),
    tracing: tracingOf(env),
    secretsKey: env.SECRETS_KEY,
    nodeId,
    leaseMs: env.NODE_LEASE_MS,
    /** This start of this node: what a call's owner is, so that others know whose calls to end when it is lost. */
    ownerId: `${nodeId}/${randomUUID().slice(0, 8)}`,
    retention: {
      eventDays: env.EVENT_RETENTION_DAYS,
      contextHours: env.CONTEXT_RETENTION_HOURS,
      historyDays: env.HISTORY_RETENTION_DAYS,
    },
    shutdownTimeoutMs: env.SHUTDOWN_TIMEOUT_MS ?? 30_000,
    /** Who sits in front of it does not want to wait for calls of a sandbox. */
    terminalShutdownTimeoutMs: env.SHUTDOWN_TIMEOUT_MS ?? 5_000,
    /** Undefined: on a terminal. */
    logCalls: env.LOG_CALLS === undefined ? undefined : env.LOG_CALLS === 'true',
    shutdownDelayMs: env.SHUTDOWN_DELAY_MS,
    logLevel: env.LOG_LEVEL,
  };
}

/**
 * Rows of the table in sip-config/README.md: name, default, meaning. A test keeps the two equal.
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

/** Passwords of trunks and keys of speech-to-text providers: a file names the variable, never the secret. */
export function readSecrets(
  names: readonly string[],
  env: Readonly<Record<string, string | undefined>> = process.env,
): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(names.map((name) => [name, env[name]]));
}
