// Connects the watch over the servers to the parts that know them, and keeps it running.

import { repeat } from '../lib/repeat.ts';
import { within } from '../lib/within.ts';
import { DatabaseWatch } from '../servers/database-watch.ts';
import { type DiskSpace, diskSpaceOf } from '../servers/disk-space.ts';
import type { ServerFacts } from '../servers/server-facts.ts';
import { ServerWatch } from '../servers/server-watch.ts';
import { readBacklog, readDatabaseBytes } from '../store/backlog.ts';
import { checkWritable } from '../store/database.ts';
import { listNodes } from '../store/nodes.ts';
import { isReadOnlyServer } from '../store/sql-errors.ts';
import type { Environment } from './environment.ts';
import type { Events } from './events.ts';
import type { Node } from './nodes.ts';
import type { Recording } from './recording.ts';
import type { SipParts } from './sip.ts';
import type { Storage } from './storage.ts';

export type Servers = {
  readonly watch: ServerWatch;
  /**
   * Probes the database.
   *
   * @throws Error if it doesn't respond or is read-only
   */
  probeDatabase(): Promise<void>;
};

type Parts = {
  readonly storage: Storage;
  readonly node: Node;
  readonly events: Events;
  readonly sip: SipParts;
  readonly callCount: () => number;
  readonly recording: Pick<Recording, 'storeFacts'>;
};

/** How late the watch may notice a change that nobody asks about. */
const watchEveryMs = 5_000;
/** An embedded database doesn't go away on its own, and each probe would wake an idle laptop. */
const watchEmbeddedEveryMs = 15_000;
/** The disk fills up slowly. */
const measureEveryMs = 15_000;
/** The start doesn't wait longer for the first measurements. */
const firstTimeoutMs = 1_000;

export async function openServers(environment: Environment, parts: Parts): Promise<Servers> {
  const { config, logger, clock, closers } = environment;
  const isEmbedded = config.databaseUrl === undefined;
  const database = watchDatabase(parts.storage);
  let disk: DiskSpace | undefined;
  const measure = async (): Promise<void> => {
    disk = await diskSpaceOf(config.dataDir);
  };
  const watch = new ServerWatch({
    facts: () => ({ ...factsOf(environment, parts, database), disk }),
    now: () => clock.now(),
    logger,
  });
  const first = Promise.allSettled([database.watch(), measure()]);
  await within(first, firstTimeoutMs);
  watch.servers();
  const everyMs = isEmbedded ? watchEmbeddedEveryMs : watchEveryMs;
  const repetitions = [
    // A stop doesn't wait for a server that may never respond.
    repeat({ name: 'database watch', everyMs, logger }, (stopped) =>
      within(database.watch(), stopped),
    ),
    repeat({ name: 'measurements', everyMs: measureEveryMs, logger }, (stopped) =>
      within(measure(), stopped),
    ),
    repeat({ name: 'server watch', everyMs: watchEveryMs, logger }, async () => {
      watch.servers();
    }),
  ];
  closers.add('server watch', () => Promise.all(repetitions.map((each) => each.stop())));
  return { watch, probeDatabase: () => database.probe() };
}

function watchDatabase({ database: { pool, kind } }: Storage): DatabaseWatch {
  return new DatabaseWatch({
    checkWritable: () => checkWritable(pool),
    isReadOnly: isReadOnlyServer,
    backlog: () => readBacklog(pool),
    nodes: () => listNodes(pool),
    size: kind === 'postgres' ? () => readDatabaseBytes(pool) : undefined,
    nowMs: () => performance.now(),
  });
}

function factsOf(
  { config }: Environment,
  { storage, node, events, sip, callCount, recording }: Parts,
  database: DatabaseWatch,
): Omit<ServerFacts, 'disk'> {
  const { readings, roundTripMs } = database;
  const { lease } = node;
  return {
    database: {
      ...{ isEmbedded: storage.database.kind === 'pglite', condition: database.condition },
      ...(roundTripMs === undefined ? {} : { roundTripMs }),
    },
    nats: { ...events.status(), isEmbedded: config.nats.url === undefined },
    engines: { areDrachtio: sip.isDrachtio, all: sip.port.engines() },
    thisNode: {
      ...{ ownerId: config.ownerId, nodeId: config.nodeId, calls: callCount() },
      isDraining: node.isDraining(),
      lease: { isHeld: lease.isHeld, ageMs: lease.ageMs, durationMs: lease.durationMs },
    },
    nodes: { rows: database.knownNodes, isCurrent: readings !== undefined },
    gateways: sip.gateways(),
    backlog: readings?.backlog,
    databaseBytes: readings?.databaseBytes,
    recordingStore: recording.storeFacts(),
  };
}
