// Starts a real nats-server for a test file, in its own folder, which `stop` removes.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type NatsServer, startNatsServer } from '../../src/embedded/nats/nats-server.ts';
import { connectEvents, type EventConnection } from '../../src/events/connection.ts';
import { silentLogger } from '../../src/lib/logger.ts';

export type TestNats = {
  readonly server: NatsServer;
  readonly dataDir: string;
  readonly url: string;
  /**
   * Opens a connection. By default each connection uses a separate prefix, so that tests in one
   * file don't see each other's streams.
   */
  connect(prefix?: string): Promise<EventConnection>;
  /** Closes all connections, stops the server and removes the folder. */
  stop(): Promise<void>;
};

export async function startTestNats(): Promise<TestNats> {
  const dataDir = await mkdtemp(join(tmpdir(), 'offhook-nats-'));
  const server = await startNatsServer({
    dataDir,
    searchPath: process.env['PATH'] ?? '',
    logger: silentLogger,
  });
  const connections: EventConnection[] = [];
  let prefixes = 0;
  return {
    server,
    dataDir,
    url: server.url,
    connect: async (prefix) => {
      prefixes += 1;
      const connection = await connectEvents({
        url: server.url,
        prefix: prefix ?? `test${prefixes}`,
        name: 'test',
        logger: silentLogger,
      });
      connections.push(connection);
      return connection;
    },
    stop: async () => {
      await Promise.all(connections.map((connection) => connection.close()));
      await server.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** Returns the same connection, but with `parts` in place of its own. */
export function withParts(
  connection: EventConnection,
  parts: Partial<EventConnection>,
): EventConnection {
  return new Proxy(connection, {
    get: (target, name): unknown => {
      if (name in parts) return Reflect.get(parts, name);
      const value: unknown = Reflect.get(target, name);
      return value instanceof Function ? (value.bind(target) as unknown) : value;
    },
  });
}
