// A receiver of notifications, run by `offhook listen`, `offhook call --follow` and the demo. It
// checks each signature against the raw body, and passes the notification on with the result. You
// can model your own receiver on it.

import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { verify } from '../notifier/webhooks.ts';

export type ReceivedNotification = {
  readonly headers: IncomingHttpHeaders;
  /** The body exactly as received, which is what the signature covers. */
  readonly rawBody: string;
  /** The parsed body. Undefined if it is not JSON. */
  readonly body: unknown;
  readonly verified: boolean;
  /** Why the verification failed, in one word. Absent if it succeeded. */
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

/** A notification has a few KiB, including its metadata. */
const longestBodyBytes = 1_024 * 1_024;

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
    if (bytes > longestBodyBytes) throw new Error('the body is too long');
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
