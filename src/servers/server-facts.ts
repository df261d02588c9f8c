// What this process knows about the servers. `server-words.ts` puts it into words, and the metrics
// export it as numbers.

import type { NatsStatus } from '../events/nats-status.ts';
import type { Backlog } from '../store/backlog.ts';
import type { NodeRow } from '../store/nodes.ts';
import type { DiskSpace } from './disk-space.ts';

export type DatabaseCondition = 'up' | 'slow' | 'read-only' | 'away' | 'unknown';

/** The store of recordings. */
export type RecordingStoreFacts = {
  readonly name: string;
  /** False until it was used for the first time. */
  readonly isKnown: boolean;
  /** What is wrong with it. Undefined if nothing is. */
  readonly fault?: string;
  readonly since?: Date;
  /** Recordings of this node that are not stored yet. */
  readonly waiting: number;
};

export type ServerFacts = {
  readonly database: {
    readonly isEmbedded: boolean;
    /** `unknown` until the first probe has returned. */
    readonly condition: DatabaseCondition;
    /** The duration of the last probe, if the database responded to it. */
    readonly roundTripMs?: number;
  };
  readonly nats: NatsStatus & { readonly isEmbedded: boolean };
  readonly engines: {
    /** True if the engines are drachtio servers. False for the embedded engine. */
    readonly areDrachtio: boolean;
    readonly all: readonly { readonly engine: string; readonly isUp: boolean }[];
  };
  readonly thisNode: {
    readonly ownerId: string;
    readonly nodeId: string;
    readonly calls: number;
    readonly isDraining: boolean;
    readonly lease: {
      readonly isHeld: boolean;
      readonly ageMs: number;
      readonly durationMs: number;
    };
  };
  /** All nodes as the database last listed them, including this one. */
  readonly nodes: {
    readonly rows: readonly NodeRow[];
    /** False if the list is old, because the database is away. */
    readonly isCurrent: boolean;
  };
  readonly gateways: readonly {
    readonly trunk: string;
    readonly gateway: string;
    readonly isUp: boolean;
  }[];
  /** Undefined if nothing was recorded yet. */
  readonly recordingStore?: RecordingStoreFacts | undefined;
  /** Undefined if the file system can't tell. */
  readonly disk: DiskSpace | undefined;
  /** Undefined while the database is away. */
  readonly backlog: Backlog | undefined;
  /** Undefined while the database is away, and on PGlite, which doesn't know its size. */
  readonly databaseBytes: number | undefined;
};
