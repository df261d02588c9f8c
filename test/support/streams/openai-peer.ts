// A bot of the OpenAI Agents SDK, written as its documentation shows: a WebSocket server that
// passes each connection to the SDK's Twilio transport. The transport runs the package's own code.

import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { TwilioRealtimeTransportLayer } from '@openai/agents-extensions';
import { type WebSocket, WebSocketServer } from 'ws';
import { ScriptedRealtime } from './scripted-realtime.ts';

export class OpenAiPeer implements AsyncDisposable {
  readonly realtime: ScriptedRealtime;
  readonly transports: TwilioRealtimeTransportLayer[] = [];
  /** The texts of all messages on the last connection. */
  texts: string[] = [];
  readonly errors: unknown[] = [];
  readonly #server: WebSocketServer;

  private constructor(server: WebSocketServer, realtime: ScriptedRealtime) {
    this.#server = server;
    this.realtime = realtime;
    server.on('connection', (socket) => this.#serve(socket));
  }

  static async start(responses: readonly (readonly Uint8Array[])[]): Promise<OpenAiPeer> {
    const realtime = await ScriptedRealtime.start(responses);
    const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
    await once(server, 'listening');
    return new OpenAiPeer(server, realtime);
  }

  get url(): string {
    return `ws://127.0.0.1:${(this.#server.address() as AddressInfo).port}/media-stream`;
  }

  #serve(socket: WebSocket): void {
    const transport = new TwilioRealtimeTransportLayer({ twilioWebSocket: socket });
    transport.on('error', (error) => this.errors.push(error));
    this.transports.push(transport);
    this.texts = [];
    socket.on('message', (data: Buffer) => this.texts.push(data.toString()));
    transport
      .connect({ apiKey: 'test', url: this.realtime.url })
      .catch((error: unknown) => this.errors.push(error));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const transport of this.transports) transport.close();
    for (const socket of this.#server.clients) socket.terminate();
    await new Promise((resolve) => this.#server.close(resolve));
    await this.realtime[Symbol.asyncDispose]();
  }
}
