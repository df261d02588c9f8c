// Connections on which nothing was asked yet: browsers and proxies open some in advance. Node takes them for busy, and looks for their
// time-out no more once the server closes: without this they would hold the gateway's end up for as long as the other side likes.

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { ApiInstance } from './http.ts';

export function closeUnusedConnections(server: ApiInstance): void {
  const unused = new Set<Socket>();
  server.server.on('connection', (socket: Socket) => {
    unused.add(socket);
    socket.once('close', () => unused.delete(socket));
  });
  server.server.on('request', ({ socket }: IncomingMessage) => unused.delete(socket));
  server.addHook('preClose', (done) => {
    for (const socket of unused) socket.destroy();
    done();
  });
}
