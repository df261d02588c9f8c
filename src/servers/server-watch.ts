// Knows the state of each server, and since when. This is the only source for `/ready`, the metrics
// and the console's first page, so that they can't contradict each other.

import type { Logger } from '../lib/logger.ts';
import type { ServerFacts } from './server-facts.ts';
import { isFine, type ServerLine, type ServerStatus } from './server-line.ts';
import { serverLines } from './server-words.ts';

export type ServerWatchPorts = {
  readonly facts: () => ServerFacts;
  readonly now: () => Date;
  readonly logger: Logger;
};

type Known = Pick<ServerStatus, 'state' | 'since'>;

export class ServerWatch {
  readonly #ports: ServerWatchPorts;
  /** By the lines' ids. A server that has gone (e.g. a trunk after a reload) is forgotten. */
  #known: ReadonlyMap<string, Known> = new Map();

  constructor(ports: ServerWatchPorts) {
    this.#ports = ports;
  }

  facts(): ServerFacts {
    return this.#ports.facts();
  }

  /**
   * Returns a line for each server. Notices changes of their states, and logs them, so call this
   * every few seconds even if nobody asks.
   */
  servers(): readonly ServerStatus[] {
    const now = this.#ports.now();
    const servers = serverLines(this.#ports.facts(), now).map((line) => this.#dated(line, now));
    this.#known = new Map(servers.map(({ id, state, since }) => [id, { state, since }]));
    return servers;
  }

  #dated(line: ServerLine, now: Date): ServerStatus {
    const before = this.#known.get(line.id);
    const since = line.since ?? (before?.state === line.state ? before.since : now);
    if (before !== undefined && before.state !== line.state) this.#log(line);
    return { ...line, since };
  }

  #log(line: ServerLine): void {
    const { name: server, state, affects, detail } = line;
    const fields = { server, state, affects, detail };
    if (isFine(line)) this.#ports.logger.info(fields, 'the state of a server has changed');
    else this.#ports.logger.warn(fields, 'the state of a server has changed');
  }
}
