// A TCP line that a test can cut. A cut loses any data on the line, and no client gets through
// until the test heals it.

import { once } from 'node:events';
import {
  type AddressInfo,
  connect,
  createServer,
  type NetConnectOpts,
  type Socket,
} from 'node:net';

export type Wire = {
  readonly port: number;
  cut(): void;
  /**
   * Lets nothing through, without closing any connection, as a network that drops all packets. What
   * was sent arrives once the line is healed.
   */
  stall(): void;
  /**
   * Mutes each client that sends this text from now on: its data goes through, but it gets no
   * answer.
   */
  muteSenderOf(text: string): void;
  /** Heals the line. A muted client loses its connection and may connect again. */
  heal(): void;
  close(): Promise<void>;
};

export async function layWire(to: NetConnectOpts): Promise<Wire> {
  const sockets = new Set<Socket>();
  let isCut = false;
  let isStalled = false;
  const waiting = new Set<Socket>();
  let mutedText: string | undefined;
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('close', () => sockets.delete(socket));
    // The `close` event that follows reaches both ends.
    socket.on('error', () => undefined);
  };
  const server = createServer((near) => {
    keep(near);
    if (isCut) {
      near.destroy();
      return;
    }
    if (isStalled) {
      near.pause();
      waiting.add(near);
      return;
    }
    join(near);
  });
  const join = (near: Socket): void => {
    const far = connect(to);
    keep(far);
    if (isStalled) far.pause();
    let isMuted = false;
    near.on('data', (chunk: Buffer) => {
      if (mutedText !== undefined && chunk.includes(mutedText)) isMuted = true;
      far.write(chunk);
    });
    far.on('data', (chunk: Buffer) => {
      if (!isMuted) near.write(chunk);
    });
    near.on('close', () => far.destroy());
    far.on('close', () => near.destroy());
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const drop = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    cut: () => {
      isCut = true;
      drop();
    },
    stall: () => {
      isStalled = true;
      for (const socket of sockets) socket.pause();
    },
    muteSenderOf: (text) => {
      mutedText = text;
    },
    heal: () => {
      if (mutedText !== undefined) drop();
      isCut = false;
      isStalled = false;
      mutedText = undefined;
      for (const near of waiting) if (!near.destroyed) join(near);
      waiting.clear();
      for (const socket of sockets) socket.resume();
    },
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      drop();
      await closed;
    },
  };
}

/** Lays a wire to a database. Its URL names either a port or a socket's folder. */
export async function layDatabaseWire(databaseUrl: string): Promise<Wire> {
  const database = parse(databaseUrl);
  const folder = database.searchParams.get('host');
  const port = Number(database.port || 5_432);
  return await layWire(
    folder === null ? { host: database.hostname, port } : { path: `${folder}/.s.PGSQL.${port}` },
  );
}

export function through(text: string, wire: Wire): string {
  const url = parse(text);
  url.hostname = '127.0.0.1';
  url.port = String(wire.port);
  url.searchParams.delete('host');
  return url.href;
}

/**
 * Parses the URL of a database. The URL of a PostgreSQL on a unix socket has no host, which `URL`
 * does not accept.
 */
function parse(text: string): URL {
  return new URL(text.replace('@/', '@127.0.0.1/'));
}
