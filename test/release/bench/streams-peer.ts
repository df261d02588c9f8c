// The far ends and the bots of the stream bench, in one process of their own, so that a single
// clock measures when each byte left and arrived. Every frame is filled with a byte that identifies
// it.

import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import { rtpHeaderBytes, writeRtpHeader } from '../../../src/media/rtp/rtp-packet.ts';
import { FarEndMedia, type KeyTexts } from './far-end-media.ts';

export type ToPeer =
  | { readonly kind: 'open'; readonly count: number }
  /** Far end number `index` uses SRTP. */
  | { readonly kind: 'keys'; readonly index: number; readonly keys: KeyTexts }
  /** `ports` are the destinations of the far ends. Both sides then talk for `ms` milliseconds. */
  | { readonly kind: 'talk'; readonly ports: readonly number[]; readonly ms: number }
  | { readonly kind: 'greetings' }
  | { readonly kind: 'clear' }
  | { readonly kind: 'close' };
export type FromPeer =
  | { readonly kind: 'open'; readonly webSocketPort: number; readonly rtpPorts: readonly number[] }
  /** When each far end received the first audio of its bot, in milliseconds since 1970. */
  | { readonly kind: 'greeted'; readonly atMs: number[] }
  | { readonly kind: 'talked'; readonly toBotMs: number[]; readonly toPhoneMs: number[] }
  | { readonly kind: 'cleared'; readonly clearMs: number[] };

const frameMs = 20;
const frameBytes = 160;
const silence = 0xff;
/** The number of different frames. A byte is used again after 2.4 s. */
const marks = 120;
/** The byte that fills the first audio of a bot. */
const greeting = 125;
const phases = 4;
/** A frame that is later than this is skipped, because a burst would measure something else. */
const latestMs = 60;
const breathFrames = 50;
const pauseFrames = 10;

type Stream = {
  readonly rtp: Socket;
  media: FarEndMedia;
  bot: WebSocket | undefined;
  streamSid: string;
  /** When each frame left, indexed by its byte. */
  readonly saidAtMs: Float64Array;
  readonly playedAtMs: Float64Array;
  clearedAtMs: number | undefined;
  greetedAtMs: number | undefined;
};

let streams: Stream[] = [];
let toBotMs: number[] = [];
let toPhoneMs: number[] = [];
let clearMs: number[] = [];
const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });

const answer = (message: FromPeer): void => void process.send?.(message);

server.on('connection', (socket, request) => {
  if (request.url === '/echo') {
    socket.on('message', (data: Buffer) => socket.send(data.toString()));
    return;
  }
  const stream = streams[Number(request.url?.slice(1))];
  if (stream === undefined) return;
  stream.bot = socket;
  socket.on('message', (data: Buffer) => hearAtBot(stream, data.toString('latin1')));
});

function hearAtBot(stream: Stream, text: string): void {
  if (!text.startsWith('{"event":"media"')) {
    stream.streamSid = /"streamSid":"(MZ\w+)"/.exec(text)?.[1] ?? stream.streamSid;
    if (text.startsWith('{"event":"start"')) say(stream, Buffer.alloc(frameBytes, greeting));
    return;
  }
  const at = text.indexOf('"payload":"') + 11;
  note(toBotMs, stream.saidAtMs, Buffer.from(text.slice(at, at + 4), 'base64')[0] ?? silence);
}

function hearAtPhone(stream: Stream, datagram: Buffer): void {
  const packet = stream.media.unprotect(datagram) ?? new Uint8Array(0);
  const mark = packet[rtpHeaderBytes] ?? silence;
  if (mark === greeting) stream.greetedAtMs ??= performance.timeOrigin + performance.now();
  note(toPhoneMs, stream.playedAtMs, mark);
  if (stream.clearedAtMs === undefined || mark !== silence) return;
  clearMs.push(performance.now() - stream.clearedAtMs);
  stream.clearedAtMs = undefined;
}

function note(latencies: number[], leftAtMs: Float64Array, mark: number): void {
  const left = leftAtMs[mark] ?? 0;
  if (mark >= marks || left === 0) return;
  latencies.push(performance.now() - left);
  leftAtMs[mark] = 0;
}

async function openStreams(count: number): Promise<void> {
  streams = await Promise.all(
    Array.from({ length: count }, async () => {
      const rtp = createSocket('udp4');
      rtp.bind(0, '127.0.0.1');
      await once(rtp, 'listening');
      const times = () => new Float64Array(marks);
      const stream: Stream = {
        ...{
          rtp,
          media: new FarEndMedia(),
          bot: undefined,
          streamSid: '',
          clearedAtMs: undefined,
          greetedAtMs: undefined,
        },
        ...{ saidAtMs: times(), playedAtMs: times() },
      };
      rtp.on('message', (packet) => hearAtPhone(stream, packet));
      return stream;
    }),
  );
  const rtpPorts = streams.map(({ rtp }) => rtp.address().port);
  answer({ kind: 'open', webSocketPort: (server.address() as AddressInfo).port, rtpPorts });
}

/** Sends audio in both directions at the rate of a call, with the streams spread over the 20 ms. */
function talk(ports: readonly number[], ms: number): void {
  toBotMs = [];
  toPhoneMs = [];
  const startMs = performance.now();
  let step = 0;
  const run = () => {
    for (; startMs + step * (frameMs / phases) <= performance.now(); step += 1) {
      if (performance.now() - startMs - step * (frameMs / phases) > latestMs) continue;
      for (let index = step % phases; index < streams.length; index += phases) {
        talkOnce(streams[index] as Stream, ports[index] ?? 0, Math.floor(step / phases));
      }
    }
    if (performance.now() - startMs < ms) setTimeout(run, 1);
    else answer({ kind: 'talked', toBotMs, toPhoneMs });
  };
  run();
}

function talkOnce(stream: Stream, port: number, frame: number): void {
  const mark = frame % marks;
  const packet = Buffer.alloc(rtpHeaderBytes + frameBytes, mark);
  writeRtpHeader(packet, {
    ...{ payloadType: 0, marker: false, ssrc: 7 },
    ...{ sequence: frame & 0xffff, timestamp: frame * frameBytes },
  });
  stream.saidAtMs[mark] = performance.now();
  stream.rtp.send(stream.media.protect(packet), port, '127.0.0.1');
  // Bots pause from time to time, so that a backlog from a stall of this machine can drain.
  if (stream.streamSid === '' || frame % breathFrames < pauseFrames) return;
  stream.playedAtMs[mark] = performance.now();
  say(stream, Buffer.alloc(frameBytes, mark));
}

function say({ bot, streamSid }: Stream, audio: Buffer): void {
  bot?.send(
    `{"event":"media","streamSid":"${streamSid}","media":{"payload":"${audio.toString('base64')}"}}`,
  );
}

/** Queues two seconds of audio. After about half a second the bot takes back the rest. */
function clear(): void {
  clearMs = [];
  for (const stream of streams) say(stream, Buffer.alloc(100 * frameBytes, 1));
  for (const [index, stream] of streams.entries()) {
    setTimeout(
      () => {
        stream.clearedAtMs = performance.now();
        stream.bot?.send(`{"event":"clear","streamSid":"${stream.streamSid}"}`);
      },
      500 + ((index * 7) % 400),
    );
  }
  setTimeout(() => answer({ kind: 'cleared', clearMs }), 1_500);
}

process.on('message', (message: ToPeer) => {
  switch (message.kind) {
    case 'open':
      void openStreams(message.count);
      break;
    case 'keys': {
      const stream = streams[message.index];
      if (stream !== undefined) stream.media = new FarEndMedia(message.keys);
      break;
    }
    case 'talk':
      talk(message.ports, message.ms);
      break;
    case 'greetings':
      answer({
        kind: 'greeted',
        atMs: streams.map(({ greetedAtMs }) => greetedAtMs ?? Number.NaN),
      });
      break;
    case 'clear':
      clear();
      break;
    case 'close':
      for (const { rtp, bot } of streams) {
        rtp.close();
        bot?.terminate();
      }
      streams = [];
      break;
  }
});
process.on('disconnect', () => process.exit(0));
