// An RTP session that is recorded, on a clock that the test controls: what the recorder passes on,
// what the far end hears according to RTP timestamps, and what a bot hears.

import { callIdSchema } from '../../../src/calls/contract/identity.ts';
import type { MediaEvent } from '../../../src/calls/media.ts';
import type { RecordingStart } from '../../../src/calls/recording/recording.ts';
import { alawToMulaw, type Codec } from '../../../src/media/g711.ts';
import { PlayoutPool } from '../../../src/media/playout/playout-pool.ts';
import { PlayoutQueue } from '../../../src/media/playout/playout-queue.ts';
import type { CreateRecorder } from '../../../src/media/recorder-port.ts';
import {
  createRtpHeader,
  readRtp,
  timestampDistance,
  writeRtpHeader,
} from '../../../src/media/rtp/rtp-packet.ts';
import { RtpSession } from '../../../src/media/rtp/rtp-session.ts';
import { createRtpCounts, createRtpScratch } from '../../../src/media/rtp/rtp-session-ports.ts';
import type { RemoteMedia } from '../../../src/media/sdp.ts';
import { RecorderOfCall } from '../../../src/recording/audio/call-recorder.ts';
import type { RecordingPart } from '../../../src/recording/recording-messages.ts';
import { quietBot } from '../../media/support/quiet-bot.ts';
import { remote } from '../../media/support/session-bench.ts';

export const startOf = (changes: Partial<RecordingStart> = {}): RecordingStart => ({
  callId: callIdSchema.parse('call-1'),
  ...{ accountId: 'account-1', botId: 'bot-1' },
  ...{ from: 'answer', fill: 'silence', pauseOnKeys: false },
  ...changes,
});

const silence = 0xff;

export function channelOf(audio: Uint8Array, channel: 0 | 1): Uint8Array {
  const samples = new Uint8Array(audio.length / 2);
  for (let at = 0; at < samples.length; at += 1) samples[at] = audio[at * 2 + channel] as number;
  return samples;
}

/** A µ-law track of any length. What isn't written is silence. */
export class Track {
  #bytes = new Uint8Array(1 << 16).fill(silence);

  write(at: number, audio: Uint8Array): void {
    this.#grow(at + audio.length);
    if (at >= 0) this.#bytes.set(audio, at);
  }

  #grow(length: number): void {
    while (length > this.#bytes.length) {
      const longer = new Uint8Array(this.#bytes.length * 2).fill(silence);
      longer.set(this.#bytes);
      this.#bytes = longer;
    }
  }

  read(from: number, until: number): Uint8Array {
    this.#grow(until);
    return this.#bytes.slice(from, until);
  }
}

export class RecordedSession {
  readonly session: RtpSession;
  readonly parts: RecordingPart[] = [];
  /** The reports of the recording and the keys, in order. */
  readonly log: string[] = [];
  readonly events: MediaEvent[] = [];
  readonly errors: unknown[] = [];
  readonly left = new Track();
  readonly right = new Track();
  /** What the far end hears, from the first sample of the recording on. */
  readonly calleeHears = new Track();
  /** What a bot hears, tick by tick. */
  readonly botHears = new Track();
  readonly bot = new PlayoutQueue(new PlayoutPool(10_000_000), () => undefined);
  ticks = 0;
  recordedFrom = 0;
  #firstTimestamp = 0;
  #codec: Codec = 'PCMU';
  /** The numbers of the far end's next packet. */
  far = { sequence: 500, timestamp: 8_000, ssrc: 7 };

  constructor(options: { readonly createRecorder?: CreateRecorder } = {}) {
    const firstTimestamp = 2 ** 32 - 160;
    this.#firstTimestamp = firstTimestamp;
    this.session = new RtpSession(
      {
        createDetector: () => ({ done: true, push: () => [], stop: () => [] }),
        createRecorder:
          options.createRecorder ??
          ((start, timestamp, report) => {
            this.#firstTimestamp = timestamp;
            this.recordedFrom = this.ticks;
            return new RecorderOfCall(start, timestamp, { put: (part) => this.#put(part) }, report);
          }),
        inactivityFrames: 1_000_000,
        silenceFrames: 1,
        scratch: createRtpScratch(),
        counts: createRtpCounts(),
        ...{ ssrc: 0xcafe, firstSequence: 65_535, firstTimestamp, cname: 'us' },
        now: () => 1_780_000_000_000 + this.ticks * 20,
        random: () => 0.5,
      },
      {
        send: (packet) => this.#hear(packet),
        sendRtcp: () => undefined,
        connect: () => undefined,
        disconnect: () => undefined,
        report: (event) => this.#note(event),
        onDetectorError: (error) => this.errors.push(error),
        onRecorderError: (error) => this.errors.push(error),
      },
    );
  }

  /** Answers the call, with a bot that says what is written to `bot`. */
  answer(changes: Partial<RemoteMedia> = {}): void {
    this.reoffer(changes);
    const hear = (frame: Uint8Array): void =>
      this.botHears.write((this.ticks - this.recordedFrom) * 160, frame);
    this.session.streaming.start({ ...quietBot, hear }, this.bot);
  }

  reoffer(changes: Partial<RemoteMedia>): void {
    this.#codec = changes.codec ?? 'PCMU';
    this.session.applyRemote({ ...remote, ...changes }, 'answer');
  }

  record(changes: Partial<RecordingStart> = {}): void {
    this.session.execute({ kind: 'record', action: 'start', recording: startOf(changes) });
  }

  stop(): void {
    this.session.execute({ kind: 'record', action: 'stop', reason: 'command' });
  }

  tick(count = 1, isInTime = true): void {
    for (let index = 0; index < count; index += 1) {
      this.ticks += 1;
      this.session.tick(isInTime);
    }
  }

  /** The far end sends audio. */
  send(payload: Uint8Array, payloadType = 0): void {
    this.session.receive(this.#packet(payload, payloadType), '192.0.2.1', 4_000);
    this.far.timestamp = (this.far.timestamp + payload.length) >>> 0;
  }

  /** The far end is silent, or loses audio, while its clock continues. */
  sendNothing(samples: number): void {
    this.far.timestamp = (this.far.timestamp + samples) >>> 0;
  }

  /** The far end sends a packet of a key that began `duration` samples ago. */
  press(duration: number, isEnd = false, event = 5): void {
    const { timestamp } = this.far;
    const packet = this.#packet(
      Uint8Array.from([event, (isEnd ? 0x80 : 0) | 10, duration >> 8, duration & 0xff]),
      101,
      (timestamp - duration) >>> 0,
    );
    this.session.receive(packet, '192.0.2.1', 4_000);
  }

  #packet(payload: Uint8Array, payloadType: number, timestamp = this.far.timestamp): Uint8Array {
    const packet = new Uint8Array(12 + payload.length);
    const { sequence, ssrc } = this.far;
    writeRtpHeader(packet, { payloadType, marker: false, sequence, timestamp, ssrc });
    packet.set(payload, 12);
    this.far.sequence = (sequence + 1) & 0xffff;
    return packet;
  }

  #hear(packet: Uint8Array): void {
    const header = createRtpHeader();
    readRtp(packet, header);
    if (header.payloadType === 101) return;
    const audio = packet.subarray(header.payloadStart, header.payloadEnd);
    const at = timestampDistance(header.timestamp, this.#firstTimestamp);
    const isAlaw = this.#codec === 'PCMA';
    this.calleeHears.write(at, isAlaw ? audio.map((byte) => alawToMulaw[byte] as number) : audio);
  }

  #put(part: RecordingPart): void {
    if (part.kind === 'audio') {
      this.left.write(part.at, channelOf(part.audio, 0));
      this.right.write(part.at, channelOf(part.audio, 1));
    }
    this.parts.push(part);
  }

  #note(event: MediaEvent): void {
    this.events.push(event);
    if (event.kind === 'dtmf') this.log.push(`key ${event.digit}`);
    if (event.kind !== 'recording') return;
    const { report } = event;
    switch (report.kind) {
      case 'started':
        this.log.push('started');
        break;
      case 'paused':
        this.log.push(`paused ${report.offsetMs} by ${report.by}`);
        break;
      case 'resumed':
        this.log.push(`resumed ${report.offsetMs}`);
        break;
      case 'stopped':
        this.log.push(`stopped ${report.durationMs} (${report.pausedMs})`);
        break;
      case 'failed':
        this.log.push(`failed ${report.reason}`);
    }
  }
}
