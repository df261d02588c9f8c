// The only module that reads the environment. All variables are optional, and by default everything
// is embedded. The resulting configuration is frozen.

import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { maxHeldQueueTimeoutMs, maxRingTimeoutMs } from './calls/dialout-limits.ts';
import {
  dnsServers,
  drachtioUrl,
  natsUrl,
  networks,
  port,
  postgresUrl,
  timerMs,
  trustedNetworks,
} from './lib/config-values.ts';
import { describeIssues } from './lib/issues.ts';
import { natsAccess, natsNkey } from './lib/nats-variables.ts';
import { secretsOf } from './lib/secret-files.ts';
import { maxTokenMaxTtlS, minTokenMaxTtlS } from './store/apps/app-credentials.ts';
import { keyForm, keyOf } from './store/secret-keys.ts';

/** Variables that contain secrets. Each has a companion NAME_FILE. */
const secretVariables = [
  'DATABASE_URL',
  'NATS_URL',
  'NATS_NKEY',
  'DRACHTIO_URL',
  'SECRETS_KEY',
  'SECRETS_KEY_PREVIOUS',
] as const;

function fileFor(name: (typeof secretVariables)[number]) {
  return z.string().optional().describe(`Path of a file that contains ${name}, in its place.`);
}

/** Enough for some 10,000 calls, so that a small number can't be mistaken for megabytes. */
const minNatsMaxBytes = 64 * 1_024 * 1_024;

const environment = z.object({
  HTTP_HOST: z.string().default('127.0.0.1').describe('Address that the API listens on.'),
  HTTP_PORT: port.default(3000).describe('Port of the API. 0 selects a free port.'),
  PUBLIC_URL: z
    .url('must be an absolute URL, e.g. https://offhook.example.com')
    .optional()
    .describe('Base URL under which clients reach the API.'),
  TRUSTED_PROXIES: trustedNetworks
    .optional()
    .describe(
      'Networks of trusted proxies. The gateway reads the client address from their X-Forwarded-For header. Default: no trusted proxies.',
    ),
  TOKEN_MAX_TTL_S: z.coerce
    .number()
    .int()
    .min(minTokenMaxTtlS)
    .max(maxTokenMaxTtlS)
    .default(86_400)
    .describe('Maximum lifetime of app tokens, in seconds. Applies to apps created from now on.'),
  DATA_DIR: z
    .string()
    .default('.offhook')
    .describe('Folder for the data of the embedded parts and for runtime.json.'),
  DATABASE_URL: postgresUrl
    .optional()
    .describe('URL of PostgreSQL. Default: an embedded PGlite under DATA_DIR.'),
  DATABASE_URL_FILE: fileFor('DATABASE_URL'),
  NATS_URL: natsUrl
    .optional()
    .describe(
      'URL of a NATS server with JetStream. Default: a private nats-server under DATA_DIR.',
    ),
  NATS_URL_FILE: fileFor('NATS_URL'),
  NATS_CREDS: z
    .string()
    .optional()
    .describe('Path of a NATS credentials file (.creds) with a user’s JWT and nkey seed.'),
  NATS_NKEY: natsNkey
    .optional()
    .describe('Seed of the nkey with which the gateway signs in to NATS (SU…).'),
  NATS_NKEY_FILE: fileFor('NATS_NKEY'),
  NATS_CA: z
    .string()
    .optional()
    .describe(
      'Path of the CA certificates (PEM) that the NATS servers’ certificates must come from. Requires TLS. Default: the system’s CAs.',
    ),
  NATS_CERT: z
    .string()
    .optional()
    .describe('Path of the client certificate (PEM) for NATS. Requires TLS, and NATS_KEY.'),
  NATS_KEY: z.string().optional().describe('Path of the private key (PEM) of NATS_CERT.'),
  NATS_PREFIX: z
    .string()
    .regex(/^[A-Za-z0-9_-]+$/, 'must be letters, digits, _ and - only')
    .default('offhook')
    .describe('First token of all NATS subjects and prefix of all stream names.'),
  NATS_REPLICAS: z
    .enum(['1', '3', '5'], 'must be 1, 3 or 5')
    .optional()
    .describe(
      'How many servers of a NATS cluster keep each stream that the gateway creates: 1, 3 or 5. Default: 3 in a cluster, otherwise 1.',
    ),
  NATS_MAX_BYTES: z.coerce
    .number()
    .int()
    .min(minNatsMaxBytes)
    .optional()
    .describe(
      'Maximum size of the calls stream, in bytes. The oldest events are removed first. The other streams get half as much in total. Default: no limit.',
    ),
  NATS_SERVER_BIN: z
    .string()
    .optional()
    .describe('Path to the nats-server program. Default: the gateway searches PATH.'),
  DRACHTIO_URL: drachtioUrl
    .optional()
    .describe(
      'Control connections to drachtio servers, e.g. tcp://:secret@host:9022, separated by commas. Default: the embedded SIP engine.',
    ),
  DRACHTIO_URL_FILE: fileFor('DRACHTIO_URL'),
  SIP_HOST: z.string().default('127.0.0.1').describe('Address of the embedded SIP engine.'),
  SIP_PORT: port
    .default(5060)
    .describe('Port of the embedded SIP engine, for UDP and TCP. 0 selects a free port.'),
  SIP_ALLOWED_NETWORKS: networks
    .optional()
    .describe(
      'Networks in which requests may dial sip: targets directly, or `none`. Default: loopback on a laptop (see NOTIFY_ALLOWED_NETWORKS) if the sandbox is on, otherwise none.',
    ),
  DNS_SERVERS: dnsServers
    .optional()
    .describe(
      'DNS servers that resolve the trunks’ gateways, e.g. 10.0.0.2,10.0.0.3:5353. Default: the operating system’s, with its hosts file.',
    ),
  TRUNKS_FILE: z
    .string()
    .optional()
    .describe(
      'Path to trunks.yaml, or `none`. Default: sip-config/trunks.yaml if it exists. Without a file, the sandbox is the only trunk.',
    ),
  STT_PROVIDERS_FILE: z
    .string()
    .optional()
    .describe(
      'Path to the speech-to-text providers file (YAML). Default: no providers, so the gateway counts words by their sound.',
    ),
  STT_DEFAULT_PROVIDER: z
    .string()
    .optional()
    .describe(
      'Provider to use if a request names one that is not in the file. Default: the gateway counts words by their sound.',
    ),
  STT_STRICT: z
    .enum(['true', 'false'])
    .default('false')
    .describe('If true, the gateway rejects requests that name an unknown provider with 400.'),
  SANDBOX: z
    .enum(['on', 'off'])
    .optional()
    .describe(
      'Whether the sandbox carrier runs: on or off. Default: on if no trunks are configured.',
    ),
  MEDIA_HOST: z.string().optional().describe('Address of the RTP sockets. Default: SIP_HOST.'),
  MEDIA_PUBLIC_HOST: z
    .string()
    .optional()
    .describe('Address that the gateway writes into SDP. Default: MEDIA_HOST.'),
  MEDIA_PORT_MIN: port.default(20_000).describe('First RTP port.'),
  MEDIA_PORT_MAX: port.default(29_999).describe('Last RTP port.'),
  MEDIA_WORKERS: z.coerce
    .number()
    .int()
    .min(1)
    .max(64)
    .default(1)
    .describe('Number of worker threads for RTP and detection.'),
  RTP_INACTIVITY_TIMEOUT_MS: timerMs
    .min(1_000)
    .default(30_000)
    .describe(
      'The gateway ends an answered call after this time without RTP, unless it is on hold.',
    ),
  RTP_SILENCE_INTERVAL_MS: timerMs
    .min(20)
    .max(5_000)
    .default(200)
    .describe(
      'Interval between silence packets while the gateway has nothing to play (no bot, message or ringback), after the first second. 20 sends continuous silence.',
    ),
  MAX_CALL_DURATION_MS: timerMs
    .min(1_000)
    .default(7_200_000)
    .describe('Maximum duration of a call. Requests can set a lower limit with `maxDurationMs`.'),
  MAX_CONCURRENT_CALLS: z.coerce
    .number()
    .int()
    .min(1)
    .default(2_000)
    .describe(
      'Maximum number of simultaneous calls in this process. Further calls wait in the queue.',
    ),
  MAX_HELD_CALLS_PER_ACCOUNT: z.coerce
    .number()
    .int()
    .min(0)
    .default(100_000)
    .describe(
      'Maximum number of calls of an account that wait for a calling rule. Further ones end as `not-permitted`, with the time at which the rule would permit them.',
    ),
  QUEUE_TIMEOUT_MS: z.coerce
    .number()
    .int()
    .min(1_000)
    .default(300_000)
    .describe('The gateway gives up on a request that has been queued for this long.'),
  NOTIFY_ALLOWED_NETWORKS: networks
    .optional()
    .describe(
      'Private networks that may receive notifications, or `none`. Default: loopback on a laptop (HTTP_HOST and PUBLIC_URL local, no trunks, no DRACHTIO_URL, no DATABASE_URL), otherwise none.',
    ),
  STREAM_ALLOWED_NETWORKS: networks
    .optional()
    .describe(
      'Private networks in which bots may receive audio streams, or `none`. Default: the same as NOTIFY_ALLOWED_NETWORKS.',
    ),
  STREAM_BUFFER_MB: z.coerce
    .number()
    .int()
    .min(1)
    .max(65_536)
    .default(256)
    .describe(
      'Maximum amount of bot audio waiting to be played, in MB, for all bots in this process together.',
    ),
  SECRETS_KEY: z
    .string()
    .refine((text) => keyOf(text) !== undefined, keyForm)
    .optional()
    .describe(
      'Key that encrypts stored secrets: 32 bytes as 64 hex digits or base64. Required with DATABASE_URL.',
    ),
  SECRETS_KEY_FILE: fileFor('SECRETS_KEY'),
  SECRETS_KEY_PREVIOUS: z
    .string()
    .refine((text) => keyOf(text) !== undefined, keyForm)
    .optional()
    .describe('The key before SECRETS_KEY, while you change the key. Opens stored secrets too.'),
  SECRETS_KEY_PREVIOUS_FILE: fileFor('SECRETS_KEY_PREVIOUS'),
  NODE_ID: z
    .string()
    .regex(/^[A-Za-z0-9._-]{1,64}$/, 'must be up to 64 letters, digits, . _ -')
    .optional()
    .describe('Name of this process. Default: the host name.'),
  NODE_LEASE_MS: timerMs
    .min(1_000)
    .default(8_000)
    .describe(
      'An outage of the database that lasts this long costs no node its lease. A node that dies is noticed a few seconds later than this, at 8000 within 13 s. Other nodes then end its calls. After a database outage, and after their own start, they wait for this time once more.',
    ),
  EVENT_RETENTION_DAYS: z.coerce
    .number()
    .min(0.01)
    .default(30)
    .describe(
      'How long calls are kept. Their events and notifications are deleted a whole day at a time, so up to a day later.',
    ),
  RECORD_RETENTION_DAYS: z.coerce
    .number()
    .min(0.01)
    .default(1_826)
    .describe(
      'How long the records of calls are kept (src/rules/records.md), apart from the calls themselves. Default: five years, as 16 CFR 310.5 asks.',
    ),
  CONTEXT_RETENTION_HOURS: z.coerce
    .number()
    .min(0.01)
    .default(24)
    .describe('How long a call context is kept after its last change.'),
  HISTORY_RETENTION_DAYS: z.coerce
    .number()
    .min(0.01)
    .default(365)
    .describe(
      'How long conversation history messages are kept. Published conversations and test runs are kept this long after their last change.',
    ),
  SHUTDOWN_TIMEOUT_MS: timerMs
    .min(0)
    .optional()
    .describe(
      'How long running calls may continue after SIGTERM. The process ends within 5 s after that. Default: 30000, or 5000 on a terminal.',
    ),
  SHUTDOWN_DELAY_MS: timerMs
    .min(0)
    .default(0)
    .describe(
      'How long the process keeps accepting requests after SIGTERM. Meanwhile /ready responds with 503, so a load balancer can take the process out of service first.',
    ),
  // The gateway searches PATH for nats-server. There's no description here, because the pages
  // shouldn't list this variable.
  PATH: z.string().default(''),
  LOG_CALLS: z
    .enum(['true', 'false'])
    .optional()
    .describe(
      'Whether to print a readable line for each step of a call and each notification attempt: true or false. Default: true on a terminal.',
    ),
  OTEL_EXPORTER_OTLP_ENDPOINT: z
    .url('must be an absolute URL, e.g. http://127.0.0.1:4318')
    .optional()
    .describe(
      'URL of an OpenTelemetry collector that accepts OTLP over HTTP, e.g. http://127.0.0.1:4318. OTEL_EXPORTER_OTLP_HEADERS also applies. Default: no traces.',
    ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: z
    .url('must be an absolute URL')
    .optional()
    .describe(
      'Full URL for traces, including the path. Default: /v1/traces below OTEL_EXPORTER_OTLP_ENDPOINT.',
    ),
  OTEL_SERVICE_NAME: z.string().default('offhook').describe('The `service.name` of the traces.'),
  LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe('Lowest severity that is logged: trace, debug, info, warn, error, fatal or silent.'),
});

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

function httpOf(env: z.infer<typeof environment>) {
  return {
    host: env.HTTP_HOST,
    port: env.HTTP_PORT,
    publicUrl: env.PUBLIC_URL,
    trustedProxies: (env.TRUSTED_PROXIES ?? []) as readonly string[],
  };
}

function natsOf(env: z.infer<typeof environment>) {
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

function callsOf(env: z.infer<typeof environment>) {
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
