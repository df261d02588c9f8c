// Connects to the configured NATS server, or starts an embedded one under DATA_DIR. Then creates
// the streams and buckets. While the server is away, this happens in the background.

import { startNatsServer } from '../embedded/nats/nats-server.ts';
import { connectEvents, type EventConnection } from '../events/connection.ts';
import { withoutCredentials } from '../events/nats-access.ts';
import type { NatsStatus } from '../events/nats-status.ts';
import type { RunningPublisher } from '../events/publisher.ts';
import { StreamKeeper } from '../events/stream-keeper.ts';
import type { Environment } from './environment.ts';

export type Events = {
  readonly connection: EventConnection;
  /** The server's URL. With credentials if the server is our own. */
  readonly url: string;
  /** The same URL without credentials, for the log. */
  readonly address: string;
  status(): NatsStatus;
  /** Sets the publisher whose waiting events `status` reports. Before that, none are waiting. */
  report(publisher: Pick<RunningPublisher, 'backlog'>): void;
  /** Sets the handler to call when NATS has lost events since a time. It may be called late. */
  onLost(handler: (since: Date) => void): void;
};

export async function openEvents(environment: Environment): Promise<Events> {
  const { config, logger, closers } = environment;
  const url = config.nats.url ?? (await openNatsServer(environment));
  const isAlone = config.nats.url === undefined;
  const connection = await connectEvents({
    url,
    access: config.nats.access,
    prefix: config.nats.prefix,
    name: `offhook ${config.nodeId}`,
    logger,
    isAlone,
    mayStartWithout: true,
  }).catch((error: unknown) => {
    throw isAlone ? error : new Error('the NATS at NATS_URL cannot be used', { cause: error });
  });
  closers.add('NATS connection', () => connection.close());
  const { replicas, maxBytes } = config.nats;
  const settings = { ...config.retention, replicas, maxBytes };
  let backlog: RunningPublisher['backlog'] = () => ({ waitingEvents: 0, oldestWaitingMs: 0 });
  let onLost = (_since: Date): void => undefined;
  const keeper = new StreamKeeper({
    ...{ connection, settings, isAlone, logger },
    onLost: (since) => onLost(since),
    oldestWaitingMs: () => backlog().oldestWaitingMs,
  });
  closers.add('streams', () => keeper.stop());
  await keeper.start();
  const address = withoutCredentials(url);
  return {
    connection,
    // Programs on this machine may use the private server, but runtime.json doesn't repeat the
    // credentials of NATS_URL.
    url: isAlone ? url : address,
    address,
    status: () => ({ ...connection.status(), ...backlog() }),
    onLost: (handler) => {
      onLost = handler;
    },
    report: (publisher) => {
      backlog = () => publisher.backlog();
    },
  };
}

async function openNatsServer({ config, logger, closers }: Environment): Promise<string> {
  const { serverProgram, searchPath } = config.nats;
  const server = await startNatsServer({
    dataDir: config.dataDir,
    searchPath,
    logger,
    ...(serverProgram === undefined ? {} : { program: serverProgram }),
  });
  // The server needs this time to close its files.
  closers.add('nats-server', () => server.stop(), { reservedMs: 500 });
  return server.url;
}
