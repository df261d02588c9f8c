// The NATS connection of the process. It reconnects for ever: the rest of the process waits while
// NATS is unreachable, and never ends because of it.

import { setTimeout as pause } from 'node:timers/promises';
import {
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
} from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { inBackground } from '../lib/in-background.ts';
import type { Logger } from '../lib/logger.ts';
import { within } from '../lib/within.ts';
import { AcknowledgedPublishing, type PutOptions } from './acknowledged-publishing.ts';

/**
 * Short, because calls are under way. The jitter keeps many nodes from reconnecting at the same
 * time.
 */
const reconnectWaitMs = 200;
const reconnectJitterMs = 200;
/** A connection that died silently is noticed after two missed pings. */
const pingIntervalMs = 5_000;
const maxPingsOut = 2;
const connectTimeoutMs = 5_000;
const firstConnectTimeoutMs = 15_000;
const firstConnectRetryMs = 250;
/** Time-out of JetStream API requests. */
const requestTimeoutMs = 5_000;

/**
 * How long one request lets the server deliver messages to this process. If the process stands
 * still, the server would otherwise deliver them to it again and again, until the request ends.
 */
const pullExpiresMs = 5_000;
/**
 * The same, if no other process could take the messages. It is longer to save requests, which are
 * the only ones that an idle gateway makes.
 */
const pullAloneExpiresMs = 15_000;

export type ConnectOptions = {
  /** `nats://user:password@host:4222`. Several servers are separated by commas. */
  readonly url: string;
  /** First token of the subjects and prefix of the stream names. */
  readonly prefix: string;
  /** Name of the connection in the server's list. */
  readonly name: string;
  readonly logger: Logger;
  /** True if no other gateway uses this server. Default: false. */
  readonly isAlone?: boolean;
  readonly firstConnectTimeoutMs?: number;
};

export type EventConnection = {
  readonly prefix: string;
  readonly nats: NatsConnection;
  readonly jetstream: JetStreamClient;
  readonly manager: JetStreamManager;
  /** How long one request for messages lasts. */
  readonly pullExpiresMs: number;
  connected(): boolean;
  /**
   * Puts a message on the stream that has its subject, and returns its sequence there. Rejects if
   * the stream refuses the message, or if it is not known to be stored in time or before a
   * reconnect.
   */
  put(subject: string, payload: string, options?: PutOptions): Promise<number>;
  /** Sends the buffered messages, then closes. The time for both is bounded. */
  close(): Promise<void>;
};

/**
 * Connects to NATS. Waits a while for the server to start.
 *
 * @throws Error if the server does not start in time, or has no JetStream
 */
export async function connectEvents(options: ConnectOptions): Promise<EventConnection> {
  const nats = await firstConnect(options);
  let connected = true;
  const messages = new AcknowledgedPublishing(nats);
  const watching = watchStatus(nats, options.logger, (now) => {
    connected = now;
    // No acknowledgement will arrive for messages of the old connection.
    if (now) messages.abandon(new Error('reconnected'));
  });
  inBackground(watching, options.logger, 'watching the NATS connection');
  let manager: JetStreamManager;
  try {
    manager = await jetstreamManager(nats, { timeout: requestTimeoutMs });
  } catch (error) {
    await nats.close();
    throw new Error('NATS is reachable, but JetStream is not enabled on it (nats-server -js)', {
      cause: error,
    });
  }
  return {
    prefix: options.prefix,
    nats,
    jetstream: jetstream(nats, { timeout: requestTimeoutMs }),
    manager,
    pullExpiresMs: options.isAlone === true ? pullAloneExpiresMs : pullExpiresMs,
    connected: () => connected && !nats.isClosed(),
    put: (subject, payload, putOptions) => messages.put(subject, payload, putOptions),
    close: () => closeWithin(nats),
  };
}

type Credentials =
  | { readonly user: string; readonly pass: string }
  | { readonly token: string }
  | Readonly<Record<never, never>>;

async function firstConnect(options: ConnectOptions): Promise<NatsConnection> {
  const { servers, credentials } = parseUrls(options.url);
  const deadline = performance.now() + (options.firstConnectTimeoutMs ?? firstConnectTimeoutMs);
  for (;;) {
    try {
      return await connect({
        servers,
        ...credentials,
        name: options.name,
        timeout: connectTimeoutMs,
        maxReconnectAttempts: -1,
        reconnectTimeWait: reconnectWaitMs,
        reconnectJitter: reconnectJitterMs,
        reconnectJitterTLS: reconnectJitterMs,
        pingInterval: pingIntervalMs,
        maxPingOut: maxPingsOut,
        // A server that rejects the credentials may just be set up anew, so the client keeps
        // trying.
        ignoreAuthErrorAbort: true,
        // Otherwise each publish creates an Error whose stack is only read on a failure: 3 % of the
        // main thread.
        noAsyncTraces: true,
      });
    } catch (error) {
      if (performance.now() > deadline) {
        throw new Error(`cannot connect to NATS at ${servers.join(', ')}`, { cause: error });
      }
      await pause(firstConnectRetryMs);
    }
  }
}

/** Separates the credentials from the URLs, because the client does not read them there. */
function parseUrls(text: string): { servers: string[]; credentials: Credentials } {
  const urls = text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map((part) => new URL(part.includes('://') ? part : `nats://${part}`));
  const signedIn = urls.find((url) => url.username !== '');
  return {
    servers: urls.map((url) => (url.port === '' ? url.hostname : url.host)),
    credentials: signedIn === undefined ? {} : credentialsOf(signedIn),
  };
}

/** Returns a user and password, or a token, which NATS writes as `nats://token@host`. */
function credentialsOf(url: URL): Credentials {
  const name = decodeURIComponent(url.username);
  if (url.password === '') return { token: name };
  return { user: name, pass: decodeURIComponent(url.password) };
}

async function watchStatus(
  nats: NatsConnection,
  logger: Logger,
  setConnected: (connected: boolean) => void,
): Promise<void> {
  for await (const status of nats.status()) {
    if (status.type === 'disconnect') {
      setConnected(false);
      logger.warn('NATS connection lost');
    } else if (status.type === 'reconnect') {
      setConnected(true);
      logger.info('NATS connection restored');
    } else if (status.type === 'error') {
      logger.warn({ err: status.error }, 'NATS reported an error');
    }
  }
  setConnected(false);
}

/**
 * Draining waits for the server. This time-out keeps an unreachable server from blocking the
 * process.
 */
const closeTimeoutMs = 800;

async function closeWithin(nats: NatsConnection): Promise<void> {
  if (nats.isClosed()) return;
  await within(
    nats.drain().catch(() => undefined),
    closeTimeoutMs,
  );
  await nats.close();
}
