// The process's NATS connection. It keeps reconnecting forever, so a NATS outage can delay the
// process but never ends it.

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
import { accessOptions, type NatsAccess } from './nats-access.ts';
import { explainRefusal } from './nats-refusal.ts';
import type { Backlog, NatsStatus } from './nats-status.ts';

/**
 * Short, because calls are in progress. The jitter keeps the nodes from reconnecting all at the
 * same time.
 */
const reconnectWaitMs = 200;
const reconnectJitterMs = 200;
/** After two missed pings we know that the connection has died without being closed. */
const pingIntervalMs = 5_000;
const maxPingsOut = 2;
const connectTimeoutMs = 5_000;
const firstConnectTimeoutMs = 15_000;
const firstConnectRetryMs = 250;
/** Time-out for JetStream API requests. */
const requestTimeoutMs = 5_000;

/**
 * The server delivers messages to this process for the duration of one pull request. It should be
 * short, because if the process hangs, the server keeps redelivering messages to it until the
 * request expires.
 */
const pullExpiresMs = 5_000;
/**
 * Used instead of `pullExpiresMs` if no other process could handle the messages anyway. The time
 * can be longer in that case, and an idle gateway doesn't make any other requests.
 */
const pullAloneExpiresMs = 15_000;

export type ConnectOptions = {
  /** `nats://user:password@host:4222`, or several URLs separated by commas. */
  readonly url: string;
  /** Default: the user and password in the URL, and the system's CAs. */
  readonly access?: NatsAccess;
  /** The first token of all subjects, and the prefix of all stream names. */
  readonly prefix: string;
  /** The connection's name in the server's list of connections. */
  readonly name: string;
  readonly logger: Logger;
  /** True if no other gateway uses this server. Default: false. */
  readonly isAlone?: boolean;
  readonly firstConnectTimeoutMs?: number;
  /** Time-out of one attempt. */
  readonly connectTimeoutMs?: number;
};

export type EventConnection = {
  readonly prefix: string;
  readonly nats: NatsConnection;
  readonly jetstream: JetStreamClient;
  readonly manager: JetStreamManager;
  /** Duration of one pull request. */
  readonly pullExpiresMs: number;
  connected(): boolean;
  /** What is known about the servers and the streams. The publisher adds its events. */
  status(): Omit<NatsStatus, keyof Backlog>;
  /**
   * Publishes a message on its subject's stream and returns the message's sequence there. Rejects
   * if the stream rejects the message, or if no acknowledgement arrives in time or before a
   * reconnect.
   */
  put(subject: string, payload: string, options?: PutOptions): Promise<number>;
  /** Sends the buffered messages and closes the connection, within a time-out. */
  close(): Promise<void>;
};

/**
 * Connects to NATS. Retries for a while, in case the server is still starting.
 *
 * @throws Error if the server isn't up in time, or if JetStream isn't enabled on the server
 */
export async function connectEvents(options: ConnectOptions): Promise<EventConnection> {
  const nats = await firstConnect(options);
  let disconnectedSince: Date | undefined;
  const messages = new AcknowledgedPublishing(nats);
  const watching = watchStatus(nats, options.logger, (now) => {
    disconnectedSince = now ? undefined : (disconnectedSince ?? new Date());
    // Acknowledgements for messages sent over the old connection are lost.
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
    connected: () => disconnectedSince === undefined && !nats.isClosed(),
    status: () => ({
      isConnected: disconnectedSince === undefined && !nats.isClosed(),
      server: nats.getServer(),
      ...(disconnectedSince === undefined ? {} : { disconnectedSince }),
      ...{ streamsAway: [], streamsWithFewerReplicas: [] },
    }),
    put: (subject, payload, putOptions) => messages.put(subject, payload, putOptions),
    close: () => closeWithin(nats),
  };
}

/** `refusal` names the variable to correct, if the server can be reached. */
export class NatsUnavailable extends Error {
  readonly refusal: string | undefined;

  constructor(message: string, options: ErrorOptions & { readonly refusal: string | undefined }) {
    super(options.refusal === undefined ? message : `${message}: ${options.refusal}`, options);
    this.refusal = options.refusal;
  }
}

async function firstConnect(options: ConnectOptions): Promise<NatsConnection> {
  const { url, access = {} } = options;
  const { servers, ...how } = accessOptions(url, access);
  const deadline = performance.now() + (options.firstConnectTimeoutMs ?? firstConnectTimeoutMs);
  for (;;) {
    try {
      return await connect({
        servers,
        ...how,
        name: options.name,
        timeout: options.connectTimeoutMs ?? connectTimeoutMs,
        maxReconnectAttempts: -1,
        reconnectTimeWait: reconnectWaitMs,
        reconnectJitter: reconnectJitterMs,
        reconnectJitterTLS: reconnectJitterMs,
        pingInterval: pingIntervalMs,
        maxPingOut: maxPingsOut,
        // Keep trying even if credentials are rejected, because the server may still be setting up.
        ignoreAuthErrorAbort: true,
        // Otherwise each publish captures a stack trace in case of an error, which costs 3% of the
        // main thread's time.
        noAsyncTraces: true,
      });
    } catch (error) {
      if (performance.now() > deadline) {
        const refusal = await explainRefusal(error, servers[0] ?? '', access);
        const message = `cannot connect to NATS at ${servers.join(', ')}`;
        throw new NatsUnavailable(message, { cause: error, refusal });
      }
      await pause(firstConnectRetryMs);
    }
  }
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

/** Bounds the wait for an unreachable server while the connection is draining. */
const closeTimeoutMs = 800;

async function closeWithin(nats: NatsConnection): Promise<void> {
  if (nats.isClosed()) return;
  await within(
    nats.drain().catch(() => undefined),
    closeTimeoutMs,
  );
  await nats.close();
}
