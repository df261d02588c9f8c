// What the gateway knows about NATS, for `/ready`, the metrics, and the console's page.

export type NatsStatus = Backlog & {
  readonly isConnected: boolean;
  /**
   * `host:port` of the server that is or was connected last, or before the first connection, the
   * addresses in NATS_URL, separated by commas. Never contains credentials.
   */
  readonly server: string;
  /** Undefined while a server is connected. */
  readonly disconnectedSince?: Date;
  /** Names of streams and buckets that can't be used now, e.g. because they have no leader. */
  readonly streamsAway: readonly string[];
  /** Names of the servers that hold a copy of a stream but don't respond to its leader. */
  readonly serversAway: readonly string[];
  readonly streamsWithFewerReplicas: readonly FewerReplicas[];
  /** The size of the calls stream at the last check. Undefined if it can't be used now. */
  readonly stream?: StreamSize;
};

export type StreamSize = {
  readonly storedBytes: number;
  /** Undefined if the stream has no limit. */
  readonly maxBytes?: number;
};

/** The events of this process that have not been published yet. */
export type Backlog = {
  /** The first failure of the event that has been failing for the longest time. */
  readonly failingSince?: Date;
  /** Why that event can't be published, e.g. `insufficient storage resources available`. */
  readonly failure?: string;
  /** The number of this process's events that are waiting to be published. */
  readonly waitingEvents: number;
  /** How long the first of them has been waiting. 0 if no events are waiting. */
  readonly oldestWaitingMs: number;
};

export type FewerReplicas = {
  readonly stream: string;
  readonly replicas: number;
  readonly wanted: number;
};

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
