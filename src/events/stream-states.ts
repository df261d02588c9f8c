// Which streams and buckets can be used. `StreamKeeper` writes this; consumers, `/ready` and the
// metrics read it.

import type { FewerReplicas, NatsStatus, StreamSize } from './nats-status.ts';

export class StreamStates {
  /** The reason why a stream can't be used, by its name. */
  readonly #away = new Map<string, string>();
  readonly #fewerReplicas = new Map<string, FewerReplicas>();
  #serversAway: readonly string[] = [];
  #size: StreamSize | undefined;

  isAway(stream: string): boolean {
    return this.#away.has(stream);
  }

  /** @returns true if the stream could be used before */
  setAway(stream: string, reason: string): boolean {
    const wasUsable = !this.#away.has(stream);
    this.#away.set(stream, reason);
    return wasUsable;
  }

  /** @returns true if the stream was away before */
  setUsable(stream: string): boolean {
    return this.#away.delete(stream);
  }

  setServersAway(servers: readonly string[]): void {
    this.#serversAway = servers;
  }

  /** Undefined if the calls stream can't be used. */
  setSize(size: StreamSize | undefined): void {
    this.#size = size;
  }

  /** @returns true if this was not known yet */
  setReplicas({ stream, replicas, wanted }: FewerReplicas): boolean {
    if (replicas >= wanted) {
      this.#fewerReplicas.delete(stream);
      return false;
    }
    const isNew = !this.#fewerReplicas.has(stream);
    this.#fewerReplicas.set(stream, { stream, replicas, wanted });
    return isNew;
  }

  status(): Pick<
    NatsStatus,
    'streamsAway' | 'serversAway' | 'streamsWithFewerReplicas' | 'stream'
  > {
    return {
      streamsAway: [...this.#away.keys()],
      serversAway: this.#serversAway,
      streamsWithFewerReplicas: [...this.#fewerReplicas.values()],
      ...(this.#size === undefined ? {} : { stream: this.#size }),
    };
  }
}
