// The one NATS connection of the process. It reconnects for ever: NATS being away is a state that the rest waits out,
// never a reason to end.

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

/** Short, because calls are under way; the jitter keeps many nodes from coming back in one instant. */
const reconnectWaitMs = 200;
const reconnectJitterMs = 200;
/** A link that died silently is noticed after two missed pings. */
const pingIntervalMs = 5_000;
const maxPingsOut = 2;
const connectTimeoutMs = 5_000;
const firstConnectTimeoutMs = 15_000;
const firstConnectRetryMs = 250;
/** Of JetStream API requests. */
const requestTimeoutMs = 5_000;

/**
 * How long the server may hand messages to a process that says nothing: one that is stopped would otherwise be given them
 * again and again, for as long as its last request runs.
 */
const pullExpiresMs = 5_000;
/** Where no other process is there to be given them: fewer requests, of which an idle gateway makes nothing else. */
const pullAloneExpiresMs = 15_000;

export type ConnectOptions = {
  /** `nats://user:password@host:4222`, several separated by commas. */
  readonly url: string;
  /** First token of subjects, prefix of streams. */
  readonly prefix: string;
  /** Seen in the server's connection list. */
  readonly name: string;
  readonly logger: Logger;
  /** No other gateway is on this server. */
  readonly isAlone?: boolean;
  readonly firstConnectTimeoutMs?: number;
};

export type EventConnection = {
  readonly prefix: string;
  readonly nats: NatsConnection;
  readonly jetstream: JetStreamClient;
  readonly manager: JetStreamManager;
  /** Of requests for messages. */
  readonly pullExpiresMs: number;
  connected(): boolean;
  /**
   * Puts a message on the stream that has its subject; its sequence there. Rejects where the stream refuses it, and where it is not
   * known to be stored: in time, or before the connection was replaced.
   */
  put(subject: string, payload: string, options?: PutOptions): Promise<number>;
  /** Sends what is buffered, then closes; bounded. */
  close(): Promise<void>;
};

/** Waits a while for the server to come up. @throws Error where it does not, or has no JetStream. */
export async function connectEvents(options: ConnectOptions): Promise<EventConnection> {
  const nats = await firstConnect(options);
  let connected = true;
  const messages = new AcknowledgedPublishing(nats);
  const watching = watchStatus(nats, options.logger, (now) => {
    connected = now;
    // What was put on the old connection has no acknowledgement to come.
    if (now) messages.abandon(new Error('reconnected'));
  });
  inBackground(watching, options.logger, 'watching the NATS connection');
  let manager: JetStreamManager;
  try {
    manager = await jetstreamManager(nats, { timeout: requestTimeoutMs });
  } catch (error) {
    await nats.close();
    throw new Error('NATS answers, but JetStream is not enabled on it (nats-server -js)', {
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
        // Wrong credentials may be a server that is being set up anew; keep trying as with any other absence.
        ignoreAuthErrorAbort: true,
        // Else each publish makes an Error, with a stack that is only read when it fails: 3 % of the main thread.
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

/** The client does not read credentials from its URLs. */
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

/** `nats://token@host` is how NATS writes a token. */
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

/** Draining waits for the server; one that is unreachable must not hold the process up. */
const closeTimeoutMs = 800;

async function closeWithin(nats: NatsConnection): Promise<void> {
  if (nats.isClosed()) return;
  await within(
    nats.drain().catch(() => undefined),
    closeTimeoutMs,
  );
  await nats.close();
}
