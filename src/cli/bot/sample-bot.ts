// The sample bot for audio streams: a WebSocket server that a gateway connects to, once a call.

import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocketServer } from 'ws';
import { verify } from '../../notifier/webhooks.ts';
import { BotConversation } from './bot-conversation.ts';
import type { BotEvent } from './bot-events.ts';

export type SampleBotOptions = {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Without it, every client that connects is talked to. */
  readonly streamSecret?: string | undefined;
  readonly onEvent: (event: BotEvent) => void;
};

export type SampleBot = AsyncDisposable & { readonly url: string };

const farewellMs = 500;

export async function startSampleBot(options: SampleBotOptions): Promise<SampleBot> {
  const { host, port, streamSecret, onEvent } = options;
  const server = new WebSocketServer({
    host,
    port,
    // The gateway's messages are some hundred bytes; its parameters may be a few KiB.
    maxPayload: 65_536,
    // Signed is the path with the query, so that a proxy in front of the bot may change scheme and host.
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
      // 1001, going away: the gateway would try again.
      for (const socket of server.clients) socket.close(1001);
      // Who does not answer that is cut off.
      const cutOff = setTimeout(() => {
        for (const socket of server.clients) socket.terminate();
      }, farewellMs);
      await new Promise((resolve) => server.close(resolve));
      clearTimeout(cutOff);
    },
  };
}
