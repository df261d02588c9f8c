// A notification receiver, used by `offhook listen`, `offhook call --follow` and the demo. It
// verifies each signature against the raw body, and passes on the notification together with the
// result. Feel free to use it as a model for your own receiver.

import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { verify } from '../notifier/webhooks.ts';

export type ReceivedNotification = {
  readonly headers: IncomingHttpHeaders;
  /** The body exactly as received, because the signature covers these bytes. */
  readonly rawBody: string;
  /** The parsed body. Undefined if the body isn't JSON. */
  readonly body: unknown;
  readonly verified: boolean;
  /** The reason why verification failed, in one word. Omitted if verification succeeded. */
  readonly reason?: string;
};

export type Receiver = AsyncDisposable & { readonly url: string };

export type ReceiverOptions = {
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  readonly webhookSecret: string;
  readonly onNotification: (notification: ReceivedNotification) => void;
};

/** This is more than enough, because a notification has only a few KiB, including its metadata. */
const maxBodyBytes = 1_024 * 1_024;

export async function startReceiver(options: ReceiverOptions): Promise<Receiver> {
  const server = createServer((request, response) => {
    readBody(request).then(
      (rawBody) => {
        const { ok, ...rest } = verify(
          rawBody,
          request.headers['gateway-signature'],
          options.webhookSecret,
        );
        options.onNotification({
          headers: request.headers,
          rawBody,
          body: parseJson(rawBody),
          verified: ok,
          ...('reason' in rest ? { reason: rest.reason } : {}),
        });
        response.writeHead(ok ? 200 : 401).end();
      },
      () => response.writeHead(413, { connection: 'close' }).end(),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${options.host}:${port}/`,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    const data = chunk as Buffer;
    bytes += data.length;
    if (bytes > maxBodyBytes) throw new Error('the body is too long');
    chunks.push(data);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
