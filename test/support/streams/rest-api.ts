// A server for the REST form by which bots hang up. It keeps the requests.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

type Asked = {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly authorization: string | undefined;
  readonly body: string;
};

export type RestApi = AsyncDisposable & { readonly url: string; readonly requests: Asked[] };

export async function startRestApi(): Promise<RestApi> {
  const requests: Asked[] = [];
  const server = createServer((request, response) => {
    text(request).then(
      (body) => {
        const { method, url: path, headers } = request;
        requests.push({ method, path, authorization: headers.authorization, body });
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end('{"status":"completed"}');
      },
      // The client has closed the connection.
      () => response.destroy(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
