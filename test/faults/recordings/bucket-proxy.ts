// A way to a bucket that fails on demand: it is away, slow, or refuses the credentials. Every
// gateway has its own port, so that a run knows who is uploading.

import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

export type BucketState =
  | { readonly kind: 'up' }
  | { readonly kind: 'away' }
  | { readonly kind: 'slow'; readonly ms: number }
  | { readonly kind: 'revoked' };

const refusal =
  '<?xml version="1.0"?><Error><Code>InvalidAccessKeyId</Code><Message>revoked</Message></Error>';

export class BucketProxy implements AsyncDisposable {
  state: BucketState = { kind: 'up' };
  readonly counts = { passed: 0, lost: 0, refused: 0 };
  readonly #target: URL;
  readonly #servers = new Map<string, Server>();
  readonly #uploads = new Map<string, number>();

  constructor(target: string) {
    this.#target = new URL(target);
  }

  /** Returns the endpoint for a gateway. */
  async endpointFor(name: string): Promise<string> {
    const server = this.#servers.get(name) ?? (await this.#listen(name));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** Recordings that this gateway is uploading. */
  uploadsOf(name: string): number {
    return this.#uploads.get(name) ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.#servers.values()) {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    }
  }

  async #listen(name: string): Promise<Server> {
    const server = createServer((incoming, answer) => {
      const isUpload = incoming.method === 'PUT' && /\.wav(\.enc)?(\?|$)/.test(incoming.url ?? '');
      if (isUpload) this.#uploads.set(name, this.uploadsOf(name) + 1);
      answer.once('close', () => {
        if (isUpload) this.#uploads.set(name, this.uploadsOf(name) - 1);
      });
      this.#handle(incoming, answer).catch(() => answer.destroy());
    });
    this.#servers.set(name, server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return server;
  }

  async #handle(incoming: IncomingMessage, answer: ServerResponse): Promise<void> {
    const { state } = this;
    if (state.kind === 'away') {
      this.counts.lost += 1;
      incoming.socket.destroy();
      return;
    }
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    if (state.kind === 'revoked') {
      this.counts.refused += 1;
      answer.writeHead(403, { 'content-type': 'application/xml' }).end(refusal);
      return;
    }
    if (state.kind === 'slow') await pause(state.ms);
    if (answer.destroyed) return;
    const { method, url: path, headers } = incoming;
    const { hostname, port } = this.#target;
    const onward = request({ hostname, port, method, path, headers });
    onward.end(Buffer.concat(chunks));
    const [response] = (await once(onward, 'response')) as [IncomingMessage];
    this.counts.passed += 1;
    answer.writeHead(response.statusCode ?? 502, response.headers);
    response.pipe(answer);
  }
}
