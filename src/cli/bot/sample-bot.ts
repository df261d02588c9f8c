// The sample bot for audio streams. It is a WebSocket server, to which gateways open a connection
// for each call.

import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocketServer } from 'ws';
import { verify } from '../../notifier/webhooks.ts';
import { BotConversation } from './bot-conversation.ts';
import type { BotEvent } from './bot-events.ts';

export type SampleBotOptions = {
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  /** Verifies signatures. If undefined, the bot accepts every client. */
  readonly streamSecret?: string | undefined;
  readonly onEvent: (event: BotEvent) => void;
};

export type SampleBot = AsyncDisposable & { readonly url: string };

/** Clients have this long to close their connections before we cut them off. */
const farewellMs = 500;

export async function startSampleBot(options: SampleBotOptions): Promise<SampleBot> {
  const { host, port, streamSecret, onEvent } = options;
  const server = new WebSocketServer({
    host,
    port,
    // The gateway's messages are a few hundred bytes long, but stream parameters may need a few
    // KiB.
    maxPayload: 65_536,
    // The signature only covers the path and query, so a proxy in front of the bot may change the
    // scheme and the host.
    verifyClient: ({ req: { url = '', headers } }: { readonly req: IncomingMessage }) => {
      if (streamSecret === undefined) return true;
      const { ok } = verify(url, headers['gateway-signature'], streamSecret);
      if (!ok) onEvent({ type: 'refused' });
      return ok;
    },
  });
  server.on('connection', (socket) => new BotConversation(socket, onEvent));
  await once(server, 'listening');
  return {
    url: `ws://${host}:${(server.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      // Code 1001 means "going away". The gateway reconnects when it receives this code.
      for (const socket of server.clients) socket.close(1001);
      // Cut off any clients that haven't responded to the close in time.
      const cutOff = setTimeout(() => {
        for (const socket of server.clients) socket.terminate();
      }, farewellMs);
      await new Promise((resolve) => server.close(resolve));
      clearTimeout(cutOff);
    },
  };
}
