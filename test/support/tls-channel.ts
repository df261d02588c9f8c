// A SIP over TLS server for `RawCallee`.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer, type TLSSocket, type TlsOptions } from 'node:tls';
import { StreamFramer } from '../../src/embedded/drachtio/transport/tcp-framing.ts';
import type { Certificate } from './certificates.ts';
import { RawCallee } from './raw-callee.ts';

export type TlsCallee = AsyncDisposable & {
  readonly callee: RawCallee;
  readonly port: number;
  /** Connections that completed their handshake, oldest first, including those that have ended. */
  readonly connections: readonly TLSSocket[];
  /** Errors of handshakes. */
  readonly errors: readonly Error[];
};

export async function startTlsCallee(
  certificate: Certificate,
  options: TlsOptions & { readonly port?: number } = {},
): Promise<TlsCallee> {
  const connections: TLSSocket[] = [];
  const errors: Error[] = [];
  const server = createServer({
    cert: readFileSync(certificate.cert),
    key: readFileSync(certificate.key),
    ...options,
  });
  server.on('tlsClientError', (error) => errors.push(error));
  const callee = await RawCallee.start({
    over: async (onMessage) => {
      server.on('secureConnection', (socket) => {
        connections.push(socket);
        const framer = new StreamFramer();
        const from = { address: socket.remoteAddress ?? '', port: socket.remotePort ?? 0 };
        socket.on('error', (error) => errors.push(error));
        socket.on('data', (data: Buffer) => {
          for (const item of framer.push(data.toString('latin1'))) {
            if (item.kind === 'message') onMessage(item.text, from);
          }
        });
      });
      server.listen(options.port ?? 0, '127.0.0.1');
      await once(server, 'listening');
      return {
        port: (server.address() as AddressInfo).port,
        transport: 'TLS',
        send(to, text) {
          const open = connections.find(
            (socket) => !socket.destroyed && socket.remotePort === to.port,
          );
          open?.write(text);
        },
        async close() {
          for (const socket of connections) socket.destroy();
          server.close();
          await once(server, 'close');
        },
      };
    },
  });
  return {
    callee,
    port: callee.port,
    connections,
    errors,
    [Symbol.asyncDispose]: () => callee[Symbol.asyncDispose](),
  };
}
