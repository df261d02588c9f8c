// Replays a Pipecat bot's side of the wire: what its sources at acead05 (August 2026; Daily,
// BSD-2-Clause) send and expect.
//   src/pipecat/runner/utils.py
//     reads two messages before anything else, and recognises Twilio by the second one
//   src/pipecat/serializers/twilio.py
//     media without header, `clear` on an interruption, the REST form at the end
//   src/pipecat/transports/websocket/fastapi.py
//     a chunk of 40 ms every 40 ms by its own clock, one ahead; closes with 1000
//   src/pipecat/transports/base_output.py
//     2 s of silence in one piece before the end
// Texts have spaces, as Python's json.dumps writes them.

import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { type WebSocket, WebSocketServer } from 'ws';
import { VoiceTurns } from '../../../src/embedded/sandbox/voice-turns.ts';

/** The data that Pipecat's runner extracts from the first two messages (`CallData`). */
export type CallData = {
  readonly stream_id: string;
  readonly call_id: string;
  readonly body: Readonly<Record<string, string>>;
  readonly from: string | undefined;
  readonly to: string | undefined;
};

type Message = {
  readonly event?: string;
  readonly start?: {
    readonly streamSid?: string;
    readonly callSid?: string;
    readonly accountSid?: string;
    readonly customParameters?: Readonly<Record<string, string>>;
  };
  readonly media?: { readonly payload?: string };
  readonly dtmf?: { readonly digit?: string };
};

const chunkMs = 40;
const endSilenceMs = 2_000;
const chunkBytes = chunkMs * 8;

export type PipecatScript = {
  readonly says: Uint8Array;
  /** If set, the session ends by hanging up through the REST form, as with `auto_hang_up`. */
  readonly restApi?: { readonly baseUrl: string; readonly authToken: string };
};

/** The bot's side of one call. */
export class PipecatSession {
  /** The texts of all messages that arrived. */
  readonly texts: string[] = [];
  callData: CallData | undefined;
  accountSid = '';
  readonly digits: string[] = [];
  heardBytes = 0;
  interruptions = 0;
  /** Status of the response to the REST form. Undefined until the bot uses it. */
  hangUpStatus: number | undefined;
  readonly #socket: WebSocket;
  readonly #script: PipecatScript;
  readonly #turns = new VoiceTurns();
  /** The first two messages, which the runner reads itself. */
  readonly #first: Message[] = [];
  #speaking = new AbortController();

  constructor(socket: WebSocket, script: PipecatScript) {
    this.#socket = socket;
    this.#script = script;
    socket.on('error', () => undefined);
    socket.on('close', () => this.#speaking.abort());
    socket.on('message', (data: Buffer) => {
      this.texts.push(data.toString());
      this.#receive(JSON.parse(data.toString()) as Message);
    });
  }

  #receive(message: Message): void {
    if (this.callData === undefined) {
      this.#first.push(message);
      if (this.#first.length === 2) this.#begin();
    } else if (message.event === 'media') {
      this.#hear(Buffer.from(message.media?.payload ?? '', 'base64'));
    } else if (message.event === 'dtmf') {
      this.digits.push(message.dtmf?.digit ?? '');
    }
  }

  /** Does what `_detect_transport_type_from_message` does, and begins to speak. */
  #begin(): void {
    const found = this.#first.find(
      ({ event, start }) =>
        event === 'start' && start?.streamSid !== undefined && start.callSid !== undefined,
    );
    const {
      streamSid = '',
      callSid = '',
      accountSid = '',
      customParameters = {},
    } = found?.start ?? {};
    this.accountSid = accountSid;
    this.callData = {
      stream_id: streamSid,
      call_id: callSid,
      body: customParameters,
      from: customParameters['from_number'],
      to: customParameters['to_number'],
    };
    this.#say(this.#script.says).catch(() => undefined);
  }

  #hear(payload: Buffer): void {
    this.heardBytes += payload.length;
    if (this.#turns.hear(payload) !== 'began') return;
    // InterruptionFrame: the bot drops the audio that it has not sent yet, and sends `clear` to the
    // gateway.
    this.interruptions += 1;
    this.#speaking.abort();
    this.#write(`{"event": "clear", "streamSid": "${this.callData?.stream_id}"}`);
  }

  /** Does what `write_audio_frame` and `_write_audio_sleep` do. */
  async #say(audio: Uint8Array): Promise<void> {
    const { signal } = this.#speaking;
    let nextSendMs = 0;
    for (let at = 0; at < audio.length; at += chunkBytes) {
      if (signal.aborted) return;
      this.#writeAudio(audio.subarray(at, at + chunkBytes));
      const waitMs = Math.max(0, nextSendMs - performance.now());
      await pause(waitMs, undefined, { signal });
      nextSendMs = (waitMs === 0 ? performance.now() : nextSendMs) + chunkMs;
    }
  }

  /** Does what EndFrame does: sends silence, so that the last words are heard, then hangs up. */
  async end(): Promise<void> {
    this.#speaking = new AbortController();
    this.#writeAudio(Buffer.alloc(endSilenceMs * 8, 0xff));
    await this.#hangUp();
    this.#socket.close(1000);
  }

  async #hangUp(): Promise<void> {
    const { restApi } = this.#script;
    if (restApi === undefined) return;
    const account = this.accountSid;
    const path = `2010-04-01/Accounts/${account}/Calls/${this.callData?.call_id}.json`;
    const credentials = Buffer.from(`${account}:${restApi.authToken}`).toString('base64');
    const response = await fetch(`${restApi.baseUrl}/${path}`, {
      method: 'POST',
      headers: { authorization: `Basic ${credentials}` },
      body: new URLSearchParams({ Status: 'completed' }),
    });
    this.hangUpStatus = response.status;
  }

  #writeAudio(audio: Uint8Array): void {
    const payload = Buffer.from(audio).toString('base64');
    this.#write(
      `{"event": "media", "streamSid": "${this.callData?.stream_id}", "media": {"payload": "${payload}"}}`,
    );
  }

  #write(text: string): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(text);
  }
}

export class PipecatPeer implements AsyncDisposable {
  readonly sessions: PipecatSession[] = [];
  readonly #server: WebSocketServer;

  private constructor(server: WebSocketServer, script: PipecatScript) {
    this.#server = server;
    server.on('connection', (socket) => this.sessions.push(new PipecatSession(socket, script)));
  }

  static async start(script: PipecatScript): Promise<PipecatPeer> {
    const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
    await once(server, 'listening');
    return new PipecatPeer(server, script);
  }

  get url(): string {
    return `ws://127.0.0.1:${(this.#server.address() as AddressInfo).port}/ws`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#server.clients) socket.terminate();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
