// Watches the database: whether it responds and accepts writes, how long that takes, and what waits
// in it. There is never more than one probe and one reading at a time, so nothing piles up while
// the database is away. What we can't read now is unknown, and isn't replaced by an older value.

import type { Backlog } from '../store/backlog.ts';
import type { NodeRow } from '../store/nodes.ts';
import type { DatabaseCondition } from './server-facts.ts';

export type DatabaseWatchPorts = {
  /** @throws Error if the database doesn't respond or is read-only */
  readonly checkWritable: () => Promise<void>;
  readonly isReadOnly: (error: unknown) => boolean;
  readonly backlog: () => Promise<Backlog>;
  readonly nodes: () => Promise<readonly NodeRow[]>;
  /** Undefined on a database that doesn't know its size. */
  readonly size: (() => Promise<number>) | undefined;
  /** A monotonic clock in milliseconds. */
  readonly nowMs: () => number;
};

export type DatabaseReadings = {
  readonly backlog: Backlog;
  readonly nodes: readonly NodeRow[];
  readonly databaseBytes: number | undefined;
};

/**
 * A database that hasn't responded for this long is away. `/ready` waits only a little longer for
 * its checks, so both say the same.
 */
const silentAfterMs = 900;
/** Calls are set up with five statements in a row, so people notice this. */
const slowAfterMs = 500;
/** Readings are measured this often, whoever asks and however often. */
const readEveryMs = 15_000;
/** The size changes slowly, and finding it out touches each file of the database. */
const sizeEveryMs = 60_000;
/** Readings that are older than this are unknown. One that failed is unknown at once. */
const maxReadingAgeMs = 3 * readEveryMs;

export class DatabaseWatch {
  readonly #ports: DatabaseWatchPorts;
  #probing: Promise<void> | undefined;
  #probedAtMs = 0;
  #condition: DatabaseCondition = 'unknown';
  #roundTripMs: number | undefined;
  #readings: (DatabaseReadings & { readonly atMs: number }) | undefined;
  #knownNodes: readonly NodeRow[] = [];
  #size: { readonly bytes: number; readonly atMs: number } | undefined;

  constructor(ports: DatabaseWatchPorts) {
    this.#ports = ports;
  }

  /**
   * Probes the database, or waits for the probe that is under way.
   *
   * @throws Error if the database doesn't respond or is read-only
   */
  probe(): Promise<void> {
    this.#probing ??= this.#probeOnce().finally(() => {
      this.#probing = undefined;
    });
    return this.#probing;
  }

  get condition(): DatabaseCondition {
    return this.#isSilent() ? 'away' : this.#condition;
  }

  /** The duration of the last probe. Undefined if the database didn't respond to it. */
  get roundTripMs(): number | undefined {
    return this.#isSilent() ? undefined : this.#roundTripMs;
  }

  /** Undefined if we don't know them now. */
  get readings(): DatabaseReadings | undefined {
    const { condition } = this;
    if (this.#readings === undefined || (condition !== 'up' && condition !== 'slow'))
      return undefined;
    return this.#ports.nowMs() - this.#readings.atMs < maxReadingAgeMs ? this.#readings : undefined;
  }

  /** The nodes when we last knew them. Unlike `readings`, they stay known during an outage. */
  get knownNodes(): readonly NodeRow[] {
    return this.#knownNodes;
  }

  /** Probes the database, and takes the readings if they are due. Call it every few seconds. */
  async watch(): Promise<void> {
    try {
      await this.probe();
    } catch {
      // `condition` says it. The calls' own statements fail too, and log why.
      this.#readings = undefined;
      return;
    }
    const ageMs = this.#ports.nowMs() - (this.#readings?.atMs ?? Number.NEGATIVE_INFINITY);
    if (ageMs < readEveryMs) return;
    try {
      this.#readings = await this.#read();
      this.#knownNodes = this.#readings.nodes;
    } catch (error) {
      this.#readings = undefined;
      throw error;
    }
  }

  async #probeOnce(): Promise<void> {
    this.#probedAtMs = this.#ports.nowMs();
    try {
      await this.#ports.checkWritable();
    } catch (error) {
      this.#condition = this.#ports.isReadOnly(error) ? 'read-only' : 'away';
      this.#roundTripMs = undefined;
      throw error;
    }
    this.#roundTripMs = this.#ports.nowMs() - this.#probedAtMs;
    this.#condition = this.#roundTripMs < slowAfterMs ? 'up' : 'slow';
  }

  #isSilent(): boolean {
    return this.#probing !== undefined && this.#ports.nowMs() - this.#probedAtMs >= silentAfterMs;
  }

  async #read(): Promise<DatabaseReadings & { readonly atMs: number }> {
    const { backlog, nodes, nowMs } = this.#ports;
    const atMs = nowMs();
    return {
      ...{ atMs, backlog: await backlog(), nodes: await nodes() },
      databaseBytes: await this.#readSize(),
    };
  }

  async #readSize(): Promise<number | undefined> {
    const { size, nowMs } = this.#ports;
    if (size === undefined) return undefined;
    if (this.#size === undefined || nowMs() - this.#size.atMs >= sizeEveryMs)
      this.#size = { bytes: await size(), atMs: nowMs() };
    return this.#size.bytes;
  }
}
