// The composition root, which opens the parts in data flow order, passes each part its
// dependencies, and closes the parts in reverse. For each server, Offhook connects to the
// configured URL if there is one, and otherwise starts the embedded server.

import { randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { readSpeechToText } from '../amd/stt/provider-file.ts';
import type { AdminStores } from '../api/admin/admin-operations.ts';
import { createAdminServer } from '../api/admin/admin-server.ts';
import { createApiServer } from '../api/server.ts';
import type { ApiServices } from '../api/services.ts';
import type { CallId } from '../calls/contract/identity.ts';
import type { CallRegistry } from '../calls/life/call-registry.ts';
import { noSuchKey } from '../calls/recording/recording-request.ts';
import type { Captures } from '../capture/captures.ts';
import { checkBeforeStart, checkConfiguredFiles, checkDataFolder } from '../checks/start-checks.ts';
import { companionRoutes, openIngest } from '../companion/companion.ts';
import { type Config, readSecrets } from '../config.ts';
import { lockDataDir } from '../embedded/data-dir-lock.ts';
import type { SandboxCallSummary } from '../embedded/sandbox/sandbox-call.ts';
import { watchEvents } from '../events/hints.ts';
import { createMetrics, type Metrics } from '../http/metrics.ts';
import { openContextStore } from '../interactions/context-store.ts';
import { createCallQueries } from '../interactions/stored-calls.ts';
import { Closers } from '../lib/closers.ts';
import type { Logger } from '../lib/logger.ts';
import { createEventLog } from '../live/event-log.ts';
import { LiveEvents } from '../live/live-events.ts';
import type { MediaStatistics } from '../media/media-messages.ts';
import { createMediaPort, type MediaGateway } from '../media/media-port.ts';
import { addressProblem } from '../media/rtp/rtp-sockets.ts';
import { createDeadLetters } from '../notifier/dead-letters.ts';
import type { RecordingThread } from '../recording/recording-thread.ts';
import { createRecordingThread } from '../recording/thread-handle.ts';
import { publicServers } from '../servers/server-line.ts';
import { createPersonRemoval } from '../store/rules/person-removal.ts';
import type { CallWatcher } from '../terminal/call-lines.ts';
import { type Calls, type OpenParts, openCalls } from './calls.ts';
import { openCaptures } from './captures.ts';
import { type ConsoleAccess, createConsoleAccess, openConsole } from './console.ts';
import type { Environment } from './environment.ts';
import { type Events, openEvents } from './events.ts';
import { healthChecks } from './health.ts';
import { reachableUrls } from './late-nodes.ts';
import { networksOpenTo } from './networks.ts';
import { openNode } from './nodes.ts';
import { openNotifier } from './notifier.ts';
import { createPersons } from './persons.ts';
import { openRecording, type Recording } from './recording.ts';
import { openRules } from './rules.ts';
import { type Runtime, removeRuntime, writeRuntime } from './runtime-file.ts';
import { openServers, type Servers } from './servers.ts';
import { type ShutdownOptions, shutDown } from './shutdown.ts';
import { openSip, type SipParts } from './sip.ts';
import { openSounds } from './sounds.ts';
import { openStorage, type Storage } from './storage.ts';
import { createStreamServices } from './streams.ts';
import { openTracing } from './tracing.ts';

export type AppOptions = {
  readonly logger: Logger;
  /**
   * Called when the gateway loses a part that it can't work without. The process should then end so
   * that its supervisor restarts it.
   */
  readonly onFatal?: (error: Error) => void;
  /** Observes this process's call events and each attempt to notify the calls' receivers. */
  readonly watcher?: CallWatcher;
  /** Called whenever a call starts in this process. */
  readonly onCallStarted?: () => void;
  /** Called when a call to the sandbox carrier has ended, with a summary of the far end. */
  readonly onSandboxCallEnded?: (summary: SandboxCallSummary) => void;
};

export type App = {
  readonly runtime: Runtime;
  readonly console: ConsoleAccess;
  /** Returns how many calls are running in this process. */
  callCount(): number;
  /**
   * Reloads the trunks, which are the only configuration that can change while calls are up. If the
   * new trunks aren't valid, it logs the mistakes and keeps the old ones.
   */
  reload(): Promise<void>;
  /**
   * Ends the calls and closes all parts. See `shutdown.ts` for the steps.
   * @returns the names of the parts that did not close in time
   */
  close(options?: ShutdownOptions): Promise<readonly string[]>;
  /** The names of the parts that are still open or closing. */
  unclosed(): readonly string[];
};

/**
 * Opens all parts. If one of them fails to start, closes those that are already open.
 * @throws Error that names the part that failed to start
 */
export async function startApp(config: Config, options: AppOptions): Promise<App> {
  await checkConfiguredFiles(config);
  const { logger } = options;
  const closers = new Closers(logger);
  const environment: Environment = {
    config,
    logger,
    clock: { now: () => new Date() },
    closers,
    tracing: await openTracing(config, { logger, closers }),
    onFatal: options.onFatal ?? (() => undefined),
    watcher: options.watcher,
    onCallStarted: options.onCallStarted ?? (() => undefined),
    onSandboxCallEnded: options.onSandboxCallEnded ?? (() => undefined),
  };
  try {
    return await openApp(environment);
  } catch (error) {
    await environment.closers.closeAll();
    throw error;
  }
}

async function openApp(environment: Environment): Promise<App> {
  const { config, logger, closers } = environment;
  await openDataFolder(environment);

  const storage = await openStorage(environment);
  const node = await openNode(environment, storage);
  const events = await openEvents(environment);
  // Captures and metrics ask the registry, but we can't create it until later.
  let registry: CallRegistry | undefined;
  const hidesKeys = (callId: CallId): boolean => registry?.hidesKeys(callId) === true;
  const captures = openCaptures(environment, storage, hidesKeys);
  const sip = await openSip(environment, events.connection, captures);
  const media = await openMedia(environment, sip.beyondLaptop);

  const callCount = (): number => registry?.size ?? 0;
  let sendNotices = (): void => undefined;
  const recording = openRecording(environment, {
    ...{ storage, events, thread: media.recordingThread, onAnnounced: () => sendNotices() },
  });
  const watched = { storage, node, events, sip, callCount, recording };
  const servers = await openServers(environment, watched);
  const metrics = openMetrics({ sip, media, servers, recording, callCount });
  const notifier = await openNotifier(environment, {
    ...{ storage, events, metrics },
    mayDeliver: () => node.lease.isHeld,
    beyondLaptop: sip.beyondLaptop,
  });
  sendNotices = () => notifier.sendNotices();
  const parts = {
    ...{ storage, node, notifier, events, metrics },
    contexts: openContextStore(events.connection),
    sounds: openSounds(environment, storage, sip.beyondLaptop),
    streams: createStreamServices(config, storage, sip.beyondLaptop),
  };
  const calls = openCalls(environment, {
    ...parts,
    sip: sip.port,
    limitsOf: (trunk) => sip.router.limitsOf(trunk),
    routes: sip.router,
    media: captures.wrapPort(media.port),
    ...{ recordings: recording.port, onRecordingFailed: recording.noteFailure },
    onReleased: (callId) => captures.finish(callId),
    note: (callId, note) => captures.note(callId, note),
  });
  registry = calls.registry;
  node.report({ calls: callCount });
  const adminUrl = await openAdmin(environment, storage);
  const api = { ...parts, sip, media, calls, captures, servers, recording };
  const httpUrl = await openApi(environment, api);

  await calls.startTaking();

  const runtime = runtimeOf({ httpUrl, adminUrl }, events, sip);
  await announceRuntime(environment, runtime);
  node.markStarted();
  const servedAt = { nats: events.address, drachtio: sip.address, sandbox: sip.sandbox };
  logger.info({ httpUrl, ...servedAt }, 'offhook is up');
  logRefusedLoopback(environment, sip.beyondLaptop);
  return {
    runtime,
    console: createConsoleAccess(environment, storage, httpUrl),
    callCount,
    reload: () => sip.reloadTrunks(),
    close: (how) => shutDown({ node, calls, closers }, how),
    unclosed: () => closers.unclosed(),
  };
}

async function announceRuntime({ config, closers }: Environment, runtime: Runtime): Promise<void> {
  await writeRuntime(config, runtime);
  closers.add('runtime file', () => removeRuntime(config));
}

async function openDataFolder({ config, logger, closers }: Environment): Promise<void> {
  await checkDataFolder(config);
  const lock = await lockDataDir(config.dataDir);
  // Releasing the lock lets another process open the folder. With `isLast` we keep the lock if a
  // part didn't close, because that part may still be writing there.
  closers.add('data folder', () => lock.release(), { isLast: true });
  await checkBeforeStart(config, logger);
}

function openMetrics(parts: {
  readonly sip: SipParts;
  readonly media: MediaParts;
  readonly servers: Servers;
  readonly recording: Recording;
  readonly callCount: () => number;
}): Metrics {
  return createMetrics({
    activeCalls: parts.callCount,
    gateways: parts.sip.gateways,
    media: parts.media.statistics,
    servers: () => parts.servers.watch.facts(),
    recordings: () => parts.recording.metric(),
  });
}

function runtimeOf(
  { httpUrl, adminUrl }: { readonly httpUrl: string; readonly adminUrl: string | undefined },
  events: Events,
  sip: SipParts,
): Runtime {
  return {
    httpUrl,
    ...(adminUrl === undefined ? {} : { adminUrl }),
    natsUrl: events.url,
    drachtioUrl: sip.url,
    ...(sip.sandbox === undefined ? {} : { sandboxUri: sip.sandbox }),
    pid: process.pid,
  };
}

/**
 * Logs why we reject receivers on loopback addresses, and which setting allows them. Otherwise, a
 * developer who has set, say, DATABASE_URL might wonder why a local receiver has stopped working.
 */
function logRefusedLoopback({ config, logger }: Environment, beyond: readonly string[]): void {
  if (beyond.length === 0 || config.notifier.allowedNetworks !== undefined) return;
  logger.info(
    { because: beyond },
    'notifications to loopback and private addresses are refused; NOTIFY_ALLOWED_NETWORKS allows them',
  );
}

type ApiParts = OpenParts & {
  readonly sip: SipParts;
  readonly media: MediaParts;
  readonly calls: Calls;
  readonly captures: Captures;
  readonly servers: Servers;
  readonly recording: Recording;
};

function apiServices(environment: Environment, parts: ApiParts): ApiServices {
  const { config, clock } = environment;
  const { storage, calls, sip, media } = parts;
  return {
    apps: storage.apps,
    bots: storage.bots,
    intake: calls.intake,
    routes: sip.router,
    speechToTextProviders: media.speechToTextProviders,
    maxCallDurationMs: config.calls.maxDurationMs,
    commands: calls.commands,
    calls: createCallQueries(storage.database),
    live: openLive(environment, storage, parts.events),
    deadLetters: createDeadLetters(storage.database, clock, () => {
      parts.notifier.pollForOwed();
      parts.notifier.sendNotices();
    }),
    isNotifiable: (url) => parts.notifier.isNotifiable(url),
    isSoundReachable: (reference) => parts.sounds.isReachable(reference),
    keyProblem: async (accountId, name) =>
      (await storage.recordingKeys.find(accountId, name)) === undefined ? noSuchKey : undefined,
    streams: parts.streams,
    sounds: parts.sounds.library,
    suppressions: storage.suppressions,
    ...openRules(environment, storage, parts.events),
    suppressing: calls.suppressing,
    records: storage.records,
    recordings: parts.recording.recordings,
    persons: createPersons(
      createPersonRemoval(storage.database),
      parts.events.connection,
      parts.recording.removal,
    ),
    campaigns: storage.campaigns,
    health: healthChecks({
      database: parts.servers,
      nats: parts.events,
      sip: sip.port,
      node: parts.node,
    }),
    servers: () => publicServers(parts.servers.watch.servers()),
  };
}

async function openApi(environment: Environment, parts: ApiParts): Promise<string> {
  const { config, logger, clock, closers } = environment;
  const { storage, calls, metrics } = parts;
  const companion = {
    config,
    database: storage.database,
    secrets: storage.secrets,
    bots: storage.bots,
    events: parts.events.connection,
    clock,
    logger,
  };
  await openIngest(companion, closers);
  const server = await createApiServer({
    config,
    logger,
    metrics,
    isDraining: () => calls.isDraining(),
    isAlive: parts.node.answer,
    areas: [companionRoutes(companion), openConsole(environment, parts)],
    services: apiServices(environment, parts),
  });
  await server
    .listen({ host: config.http.host, port: config.http.port })
    .catch((error: unknown) => {
      throw new Error(
        `the API cannot listen on HTTP_HOST ${config.http.host}, HTTP_PORT ${config.http.port}`,
        { cause: error },
      );
    });
  closers.add('HTTP', () => server.close());
  const { port } = server.server.address() as AddressInfo;
  await parts.node.store.announce(reachableUrls(config.http.host, port));
  const host = config.http.host.includes(':') ? `[${config.http.host}]` : config.http.host;
  return `http://${host}:${port}`;
}

/**
 * Opens the HTTP server for the command line. Only this process can open the embedded database, so
 * `offhook apps`, `bots`, `tables` and `nodes` have to go through this server.
 *
 * @returns `http://:key@127.0.0.1:port`, or undefined with PostgreSQL, because the command line can
 *   then connect to the database directly
 */
async function openAdmin(
  { config, logger, closers }: Environment,
  stores: AdminStores,
): Promise<string | undefined> {
  if (config.databaseUrl !== undefined) return undefined;
  // We generate a new key for each start. Only users who can read runtime.json know it.
  const key = randomBytes(24).toString('hex');
  const server = createAdminServer({ stores, key, logger });
  await server.listen({ host: '127.0.0.1', port: 0 });
  closers.add('admin HTTP', () => server.close());
  const { port } = server.server.address() as AddressInfo;
  return `http://:${key}@127.0.0.1:${port}`;
}

const dayMs = 86_400_000;

/** Opens the live event feed, which sends stored events to HTTP clients. */
function openLive(
  { config, logger, clock, closers }: Environment,
  storage: Pick<Storage, 'database'>,
  events: Pick<Events, 'connection'>,
): LiveEvents {
  const live = new LiveEvents({
    log: createEventLog(storage.database),
    watch: (wake) => watchEvents(events.connection, wake),
    retentionMs: config.retention.eventDays * dayMs,
    now: () => clock.now(),
    logger,
  });
  closers.add('live events', () => live.stop());
  return live;
}

type MediaParts = {
  readonly port: MediaGateway;
  readonly statistics: () => Promise<MediaStatistics>;
  /** The provider names that requests may use in strict mode. Undefined if any name is allowed. */
  readonly speechToTextProviders: ReadonlySet<string> | undefined;
  readonly recordingThread: RecordingThread;
};

/**
 * Starts the RTP workers and reads the speech-to-text providers for their detectors.
 *
 * @throws Error if MEDIA_HOST is not one of this machine's addresses, the workers fail to start, or
 *   the providers file contains mistakes
 */
async function openMedia(
  { config, logger, closers }: Environment,
  beyondLaptop: readonly string[],
): Promise<MediaParts> {
  const { onlyNames, ...speechToText } = await readSpeechToText(config, readSecrets);
  const problem = await addressProblem(config.media.host);
  if (problem !== undefined) throw new Error(`MEDIA_HOST cannot be used: ${problem}`);
  const { allowedNetworks, bufferBytes } = config.streams;
  const streams = { bufferBytes, allowedNetworks: networksOpenTo(allowedNetworks, beyondLaptop) };
  const { spool } = config.recording;
  const recording = createRecordingThread({ spool, ownerId: config.ownerId, logger });
  // The media workers pass on the last audio when they close.
  closers.add('recording thread', () => recording.stop());
  const port = createMediaPort({
    ...{ ...config.media, streams, detectorData: speechToText, recording, logger },
  });
  closers.add('media', () => port[Symbol.asyncDispose]());
  if (!(await port.ready())) throw new Error('the media workers did not start');
  return {
    port,
    statistics: () => port.statistics(),
    speechToTextProviders: onlyNames,
    recordingThread: recording,
  };
}
