// A server of OpenAI's Realtime API that says what a test wants. It greets, detects turns as the
// real server does, and answers each turn with audio in a burst, far faster than real time.

import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import { VoiceTurns } from '../../../src/embedded/sandbox/voice-turns.ts';

export type RealtimeMessage = { readonly type: string } & Readonly<Record<string, unknown>>;

export class ScriptedRealtime implements AsyncDisposable {
  /** The messages of the agent in order, without its audio. */
  readonly received: RealtimeMessage[] = [];
  audioBytes = 0;
  readonly #server: WebSocketServer;
  readonly #responses: (readonly Uint8Array[])[];
  #count = 0;

  private constructor(server: WebSocketServer, responses: readonly (readonly Uint8Array[])[]) {
    this.#server = server;
    this.#responses = [...responses];
    server.on('connection', (socket) => this.#talkTo(socket));
  }

  /**
   * @param responses the audio of each response, in deltas. The server sends the first response
   *   immediately, and each later response after a turn of the person.
   */
  static async start(responses: readonly (readonly Uint8Array[])[]): Promise<ScriptedRealtime> {
    const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
    await once(server, 'listening');
    return new ScriptedRealtime(server, responses);
  }

  get url(): string {
    return `ws://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1/realtime`;
  }

  of(type: string): readonly RealtimeMessage[] {
    return this.received.filter((message) => message.type === type);
  }

  #talkTo(socket: WebSocket): void {
    const turns = new VoiceTurns();
    const send = (type: string, members: object): void => {
      this.#count += 1;
      socket.send(JSON.stringify({ type, event_id: `event_${this.#count}`, ...members }));
    };
    const item = { item_id: 'item_person' };
    socket.on('error', () => undefined);
    socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString()) as RealtimeMessage;
      if (message.type !== 'input_audio_buffer.append') {
        this.received.push(message);
        if (message.type === 'session.update' && this.of('session.update').length === 1) {
          this.#respond(send);
        }
        return;
      }
      const audio = Buffer.from(String(message['audio']), 'base64');
      this.audioBytes += audio.length;
      const ms = this.audioBytes / 8;
      const change = turns.hear(audio);
      if (change === 'began') {
        send('input_audio_buffer.speech_started', { ...item, audio_start_ms: ms });
      } else if (change === 'ended') {
        send('input_audio_buffer.speech_stopped', { ...item, audio_end_ms: ms });
        this.#respond(send);
      }
    });
    send('session.created', { session: { type: 'realtime' } });
  }

  #respond(send: (type: string, members: object) => void): void {
    const deltas = this.#responses.shift();
    if (deltas === undefined) return;
    const id = `resp_${this.#count}`;
    const part = { response_id: id, item_id: `item_${id}`, output_index: 0, content_index: 0 };
    send('response.created', { response: { id, status: 'in_progress' } });
    for (const delta of deltas) {
      const text = Buffer.from(delta).toString('base64');
      send('response.output_audio.delta', { ...part, delta: text });
    }
    send('response.output_audio.done', part);
    send('response.done', { response: { id, status: 'completed', output: [] } });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#server.clients) socket.terminate();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
