// NATS: the configured server, or a private one under DATA_DIR; streams, buckets and the publisher on it.

import { startNatsServer } from '../embedded/nats/nats-server.ts';
import { connectEvents, type EventConnection } from '../events/connection.ts';
import { createPublisher, type RunningPublisher } from '../events/publisher.ts';
import { ensureStreams } from '../events/streams.ts';
import type { Environment } from './environment.ts';

export type Events = {
  readonly connection: EventConnection;
  readonly publisher: RunningPublisher;
  /** With credentials. */
  readonly url: string;
  /** Without. */
  readonly address: string;
};

/** Facts that cannot be stored within this at the end are in SQL with their call's end, or not stated yet. */
const publisherStopTimeoutMs = 3_000;

/** `untilAllowed`: whether this process may state facts, or when it may again. */
export async function openEvents(
  environment: Environment,
  untilAllowed: () => Promise<void> | undefined,
): Promise<Events> {
  const { config, logger, closers } = environment;
  const url = config.nats.url ?? (await openNatsServer(environment));
  const connection = await connectEvents({
    url,
    prefix: config.nats.prefix,
    name: `offhook ${config.nodeId}`,
    logger,
    isAlone: config.nats.url === undefined,
  }).catch((error: unknown) => {
    throw config.nats.url === undefined
      ? error
      : new Error('the NATS at NATS_URL cannot be used', { cause: error });
  });
  closers.add('NATS connection', () => connection.close());
  await ensureStreams(connection, config.retention);
  const publisher = createPublisher(connection, logger, {
    untilAllowed,
    onFact: (fact) => environment.watcher?.onFact(fact),
  });
  closers.add('publisher', () => publisher.stop(publisherStopTimeoutMs));
  return { connection, publisher, url, address: url.replace(/\/\/[^@/]*@/, '//') };
}

async function openNatsServer({ config, logger, closers }: Environment): Promise<string> {
  const { serverProgram, searchPath } = config.nats;
  const server = await startNatsServer({
    dataDir: config.dataDir,
    searchPath,
    logger,
    ...(serverProgram === undefined ? {} : { program: serverProgram }),
  });
  closers.add('nats-server', () => server.stop());
  return server.url;
}
