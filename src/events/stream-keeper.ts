// Creates missing streams and buckets at startup and after each connection, and watches them. If
// NATS, a stream or its leader is away, it tries again until all streams can be used, and
// `StreamStates` says which can't.

import type { StreamInfo } from '@nats-io/jetstream';
import type { Logger } from '../lib/logger.ts';
import { type Repetition, repeat } from '../lib/repeat.ts';
import type { Acknowledged } from './acknowledged-publishing.ts';
import type { EventConnection } from './connection.ts';
import { isAway } from './nats-away.ts';
import { reasonOf } from './nats-status.ts';
import { StreamTail } from './stream-tail.ts';
import {
  createStream,
  ensureStream,
  replicasFor,
  type StreamSettings,
  streamInfo,
  type WantedStream,
  wantedStreams,
} from './streams.ts';
import { streamNames } from './subjects.ts';

/** How often we look at streams that can all be used. */
const checkIntervalMs = 15_000;
const checkAloneIntervalMs = 60_000;
/** How often we try again while a stream is away. */
const retryIntervalMs = 1_000;
/** A leader hears from each of its replicas every second. */
const replicaSilenceNs = 10_000_000_000;

export type StreamKeeperOptions = {
  readonly connection: EventConnection;
  readonly settings: StreamSettings;
  /** True if no other gateway uses this server. Then we look at its streams less often. */
  readonly isAlone: boolean;
  /**
   * Called when the calls stream has lost messages that it had acknowledged. Events since this time
   * may be lost.
   */
  readonly onLost: (since: Date) => void;
  /** For how long the oldest event has been waiting to be published. Default: 0. */
  readonly oldestWaitingMs?: () => number;
  readonly logger: Logger;
};

type Before = {
  readonly acknowledged: Acknowledged;
  /** Older events are not waiting any more. After an outage, it may be long ago. */
  readonly publishedUntil: Date;
};

export class StreamKeeper {
  readonly #options: StreamKeeperOptions;
  readonly #wanted: readonly WantedStream[];
  /** Streams that this process has created, updated, or found to be as configured. */
  readonly #ensured = new Set<string>();
  readonly #tail = new StreamTail();
  readonly #calls: string;
  #repetition: Repetition | undefined;
  #lastCheckMs = Number.NEGATIVE_INFINITY;
  #isDue = false;

  constructor(options: StreamKeeperOptions) {
    this.#options = options;
    this.#calls = streamNames(options.connection.prefix).calls;
    this.#wanted = wantedStreams(options.connection.prefix, options.settings);
  }

  /**
   * Ensures all streams once, and from then on in the background.
   *
   * @throws Error if a stream can't be created because of a mistake in the configuration
   */
  async start(): Promise<void> {
    const { connection, logger, isAlone } = this.#options;
    if (connection.connected()) {
      for (const error of await this.#check()) if (!isAway(error)) throw error;
    }
    connection.onConnected(() => {
      this.#isDue = true;
    });
    const intervalMs = isAlone ? checkAloneIntervalMs : checkIntervalMs;
    this.#repetition = repeat({ name: 'streams', everyMs: retryIntervalMs, logger }, async () => {
      if (!connection.connected()) return;
      const isResting = performance.now() - this.#lastCheckMs < intervalMs;
      const { streamsAway } = connection.status();
      if (isResting && !this.#isDue && streamsAway.length === 0) return;
      await this.#check();
    });
  }

  async stop(): Promise<void> {
    await this.#repetition?.stop();
  }

  /** @returns the errors of the streams that can't be used */
  async #check(): Promise<readonly unknown[]> {
    this.#isDue = false;
    this.#lastCheckMs = performance.now();
    const replicas = replicasFor(this.#options.connection, this.#options.settings);
    const silent = new Set<string>();
    const results = await Promise.all(
      this.#wanted.map(async (wanted) => {
        try {
          const before = this.#beforeCheck(wanted.name);
          const info = await this.#ensure(wanted, replicas);
          if (wanted.name === this.#calls) this.#watchCalls(info, before);
          for (const name of silentServers(info)) silent.add(name);
          this.#note(info, replicas);
          return [];
        } catch (error) {
          this.#noteAway(wanted.name, error);
          return [error];
        }
      }),
    );
    this.#options.connection.streams.setServersAway([...silent]);
    return results.flat();
  }

  /** Call this before asking for the stream's state. */
  #beforeCheck(stream: string): Before {
    const { connection, oldestWaitingMs = () => 0 } = this.#options;
    return {
      acknowledged: connection.acknowledged(stream),
      publishedUntil: new Date(Date.now() - oldestWaitingMs()),
    };
  }

  /** Notes the size of the calls stream, and notices if it has lost messages. */
  #watchCalls({ config, state }: StreamInfo, { acknowledged, publishedUntil }: Before): void {
    const { connection, onLost, logger } = this.#options;
    const stream = config.name;
    connection.streams.setSize({
      storedBytes: state.bytes,
      ...(config.max_bytes > 0 ? { maxBytes: config.max_bytes } : {}),
    });
    const since = this.#tail.lostSince(state.last_seq, acknowledged, publishedUntil);
    if (since === undefined) return;
    connection.forgetAcknowledged(stream);
    logger.error({ stream, since, lastSequence: state.last_seq }, 'NATS has lost events');
    onLost(since);
  }

  async #ensure(wanted: WantedStream, replicas: number): Promise<StreamInfo> {
    const { connection, logger } = this.#options;
    // We update a stream only once. Otherwise two gateways with different settings would change it
    // back and forth.
    if (!this.#ensured.has(wanted.name)) {
      const info = await ensureStream(connection, wanted, replicas);
      this.#ensured.add(wanted.name);
      return info;
    }
    const existing = await streamInfo(connection, wanted.name);
    if (existing !== undefined) return existing;
    logger.warn({ stream: wanted.name }, 'a stream has disappeared from NATS and is created again');
    return await createStream(connection, wanted, replicas);
  }

  #note(info: StreamInfo, wanted: number): void {
    const { connection, logger } = this.#options;
    const { name: stream, num_replicas: replicas } = info.config;
    if (!hasMajority(info)) {
      this.#noteAway(stream, new Error('most servers with a copy of it do not respond'));
      return;
    }
    if (connection.streams.setUsable(stream)) logger.info({ stream }, 'a stream can be used again');
    if (!connection.streams.setReplicas({ stream, replicas, wanted })) return;
    logger.warn(
      { stream, replicas, wanted },
      'a stream has fewer replicas than NATS_REPLICAS; see Replicas in sip-config/README.md',
    );
  }

  #noteAway(stream: string, error: unknown): void {
    const { connection, logger } = this.#options;
    if (stream === this.#calls) connection.streams.setSize(undefined);
    if (!connection.streams.setAway(stream, reasonOf(error))) return;
    const { server, serversAway } = connection.status();
    logger.warn({ err: error, stream, server, serversAway }, 'a stream cannot be used');
  }
}

/** @returns the names of the servers that the stream's leader has not heard from */
function silentServers({ cluster }: StreamInfo): readonly string[] {
  return (cluster?.replicas ?? [])
    .filter(({ offline, active }) => offline === true || active > replicaSilenceNs)
    .map(({ name }) => name);
}

function hasMajority(info: StreamInfo): boolean {
  const { num_replicas: replicas } = info.config;
  return silentServers(info).length * 2 < replicas;
}
