// The process's NATS connection. It keeps reconnecting forever, so a NATS outage can delay the
// process but never ends it.

import { setTimeout as pause } from 'node:timers/promises';
import {
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
} from '@nats-io/jetstream';
import { connect, type Msg, type NatsConnection, type Subscription } from '@nats-io/transport-node';
import { inBackground } from '../lib/in-background.ts';
import type { Logger } from '../lib/logger.ts';
import { within } from '../lib/within.ts';
import {
  type Acknowledged,
  AcknowledgedPublishing,
  type PutOptions,
} from './acknowledged-publishing.ts';
import { accessOptions, type NatsAccess, withoutCredentials } from './nats-access.ts';
import { isAway, isWithoutJetStream, NatsUnavailable } from './nats-away.ts';
import { explainRefusal } from './nats-refusal.ts';
import type { Backlog, NatsStatus } from './nats-status.ts';
import { StreamStates } from './stream-states.ts';

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
/** Used instead of `firstConnectTimeoutMs` if the gateway can start without NATS. */
const startWithoutAfterMs = 3_000;
const laterConnectRetryMs = 1_000;
/** How often we log that NATS is still unreachable. */
const logAgainMs = 60_000;
const jetStreamMissing =
  'NATS is reachable, but JetStream is not enabled on it (nats-server -js), or the server has disabled it (see its log)';
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
  /**
   * True if the caller can work without NATS. If no server is up in time, the connection is made
   * later, in the background. Default: false.
   */
  readonly mayStartWithout?: boolean;
};

export type Subscribing = {
  readonly queue?: string;
  readonly callback: (error: Error | null, message: Msg) => void;
};

export type EventConnection = {
  readonly prefix: string;
  /** @throws NatsUnavailable before the first connection, as do the next two */
  readonly nats: NatsConnection;
  readonly jetstream: JetStreamClient;
  readonly manager: JetStreamManager;
  /** Which streams are away or have too few replicas. `StreamKeeper` fills it in. */
  readonly streams: StreamStates;
  /** Duration of one pull request. */
  readonly pullExpiresMs: number;
  connected(): boolean;
  /** Returns the state of the servers and streams. The publisher adds its events. */
  status(): Omit<NatsStatus, keyof Backlog>;
  /** Subscribes now, or as soon as a server is connected for the first time. */
  subscribe(subject: string, subscribing: Subscribing): { stop(): void };
  /** Calls `listener` after each connection and each reconnect. */
  onConnected(listener: () => void): void;
  /**
   * Publishes a message on its subject's stream and returns the message's sequence there. Rejects
   * if the stream rejects the message, or if no acknowledgement arrives in time or before a
   * reconnect.
   */
  put(subject: string, payload: string, options?: PutOptions): Promise<number>;
  /** Returns what the stream has acknowledged to `put`. */
  acknowledged(stream: string): Acknowledged;
  /** Forgets that, because the stream is known to have lost messages. */
  forgetAcknowledged(stream: string): void;
  /** Sends the buffered messages and closes the connection, within a time-out. */
  close(): Promise<void>;
};

/**
 * Connects to NATS. Retries for a while, in case the server is still starting.
 *
 * @throws Error if the server refuses us, or if JetStream isn't enabled on it. Unless
 *   `mayStartWithout` is set, also if the server isn't up in time.
 */
export async function connectEvents(options: ConnectOptions): Promise<EventConnection> {
  const connection = new Connection(options);
  await connection.open();
  return connection;
}

/** Everything that exists once a server has been connected for the first time. */
type Link = {
  readonly nats: NatsConnection;
  readonly jetstream: JetStreamClient;
  readonly manager: JetStreamManager;
  readonly messages: AcknowledgedPublishing;
};

class Connection implements EventConnection {
  readonly prefix: string;
  readonly streams: StreamStates = new StreamStates();
  readonly pullExpiresMs: number;
  readonly #options: ConnectOptions;
  readonly #closed = new AbortController();
  readonly #listeners: (() => void)[] = [];
  /** Subscriptions to make at the first connection. */
  readonly #later = new Set<(nats: NatsConnection) => void>();
  #link: Link | undefined;
  #disconnectedSince: Date | undefined = new Date();

  constructor(options: ConnectOptions) {
    this.#options = options;
    this.prefix = options.prefix;
    this.pullExpiresMs = options.isAlone === true ? pullAloneExpiresMs : pullExpiresMs;
  }

  async open(): Promise<void> {
    const { mayStartWithout, logger } = this.#options;
    try {
      await this.#use(await firstConnect(this.#options));
    } catch (error) {
      if (mayStartWithout !== true || !isAway(error)) throw error;
      logger.warn({ err: error }, 'NATS is unreachable; the gateway starts without it');
      inBackground(this.#keepConnecting(), logger, 'connecting to NATS');
      return;
    }
    await this.#checkJetStream();
  }

  get nats(): NatsConnection {
    return this.#linked().nats;
  }

  get jetstream(): JetStreamClient {
    return this.#linked().jetstream;
  }

  get manager(): JetStreamManager {
    return this.#linked().manager;
  }

  connected(): boolean {
    return this.#disconnectedSince === undefined && this.#link?.nats.isClosed() === false;
  }

  status(): Omit<NatsStatus, keyof Backlog> {
    const since = this.#disconnectedSince;
    return {
      isConnected: this.connected(),
      server: this.#link?.nats.getServer() ?? withoutCredentials(this.#options.url),
      ...(since === undefined ? {} : { disconnectedSince: since }),
      ...this.streams.status(),
    };
  }

  subscribe(subject: string, subscribing: Subscribing): { stop(): void } {
    let subscription: Subscription | undefined;
    const subscribe = (nats: NatsConnection): void => {
      subscription = nats.subscribe(subject, subscribing);
    };
    if (this.#link === undefined) this.#later.add(subscribe);
    else subscribe(this.#link.nats);
    return {
      stop: () => {
        this.#later.delete(subscribe);
        subscription?.unsubscribe();
      },
    };
  }

  onConnected(listener: () => void): void {
    this.#listeners.push(listener);
  }

  async put(subject: string, payload: string, options?: PutOptions): Promise<number> {
    return await this.#linked().messages.put(subject, payload, options);
  }

  acknowledged(stream: string): Acknowledged {
    return this.#link?.messages.acknowledged(stream) ?? { sequence: 0 };
  }

  forgetAcknowledged(stream: string): void {
    this.#link?.messages.forgetAcknowledged(stream);
  }

  async close(): Promise<void> {
    this.#closed.abort();
    if (this.#link !== undefined) await closeWithin(this.#link.nats);
  }

  #linked(): Link {
    if (this.#link === undefined) throw new NatsUnavailable('NATS is not connected yet');
    return this.#link;
  }

  /**
   * @throws Error if JetStream isn't enabled. Unless `mayStartWithout` is set, also if it doesn't
   *   respond, e.g. because most servers of the cluster are down.
   */
  async #checkJetStream(): Promise<void> {
    try {
      await this.manager.getAccountInfo();
    } catch (error) {
      if (this.#options.mayStartWithout === true && isAway(error)) return;
      await this.close();
      throw isWithoutJetStream(error)
        ? new Error(jetStreamMissing, { cause: error })
        : new Error('NATS is reachable, but JetStream does not respond', { cause: error });
    }
  }

  async #keepConnecting(): Promise<void> {
    const { logger } = this.#options;
    const { signal } = this.#closed;
    let loggedMs = performance.now();
    while (!signal.aborted) {
      await pause(laterConnectRetryMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      try {
        const nats = await firstConnect({ ...this.#options, firstConnectTimeoutMs: 0 });
        if (signal.aborted) return await nats.close();
        await this.#use(nats);
        logger.info({ server: nats.getServer() }, 'NATS is connected');
        return;
      } catch (error) {
        if (performance.now() - loggedMs < logAgainMs) continue;
        loggedMs = performance.now();
        logger.warn({ err: error }, 'NATS is still unreachable');
      }
    }
  }

  async #use(nats: NatsConnection): Promise<void> {
    const options = { timeout: requestTimeoutMs };
    const messages = new AcknowledgedPublishing(nats);
    this.#link = {
      ...{ nats, messages, jetstream: jetstream(nats, options) },
      // With the check, this would wait for the server.
      manager: await jetstreamManager(nats, { ...options, checkAPI: false }),
    };
    this.#disconnectedSince = undefined;
    const watching = watchStatus(nats, this.#options.logger, (isConnected) => {
      if (isConnected) this.#onReconnected(messages);
      else this.#onDisconnected();
    });
    inBackground(watching, this.#options.logger, 'watching the NATS connection');
    for (const subscribe of this.#later) subscribe(nats);
    this.#later.clear();
    for (const listener of this.#listeners) listener();
  }

  #onDisconnected(): void {
    this.#disconnectedSince ??= new Date();
    this.streams.setSize(undefined);
  }

  #onReconnected(messages: AcknowledgedPublishing): void {
    this.#disconnectedSince = undefined;
    // Acknowledgements for messages sent over the old connection are lost.
    messages.abandon(new Error('reconnected'));
    for (const listener of this.#listeners) listener();
  }
}

async function firstConnect(options: ConnectOptions): Promise<NatsConnection> {
  const { url, access = {} } = options;
  const { servers, ...how } = accessOptions(url, access);
  const patienceMs = options.mayStartWithout === true ? startWithoutAfterMs : firstConnectTimeoutMs;
  const deadline = performance.now() + (options.firstConnectTimeoutMs ?? patienceMs);
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
