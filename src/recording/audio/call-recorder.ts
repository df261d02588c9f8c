// Records one call on the playout clock. Tick n of the recording is sample 160 × n of both
// channels. The left channel receives a frame in every tick. On the right channel, a packet's place
// follows from its RTP timestamp, because that's where the far end hears it; where nothing was sent
// is silence. Audio leaves once a second, and only when it's too old for a key to silence it.

import type {
  RecordingFault,
  RecordingReport,
  RecordingStart,
  RecordingStop,
} from '../../calls/recording/recording.ts';
import type { Codec } from '../../media/g711.ts';
import type { CallRecorder } from '../../media/recorder-port.ts';
import { frameSamples } from '../../media/rtp/jitter-buffer.ts';
import { timestampDistance } from '../../media/rtp/rtp-packet.ts';
import {
  channelCount,
  type RecordingPart,
  sampleRateHz,
  samplesPerMs,
  silentSample,
} from '../recording-messages.ts';
import { type Pause, Pauses } from './pauses.ts';
import { isNearClock, TwoChannelBuffer } from './two-channel-buffer.ts';

/**
 * How long audio is held back. A relayed packet that arrives after its tick belongs to that tick,
 * so it is two frames. With `pauseOnKeys`, it's the 200 ms before a key, and another 100 ms in case
 * the first packets of the key are lost.
 */
const holdBackSamples = 2 * frameSamples;
const keyHoldBackSamples = 300 * samplesPerMs;
const partSamples = sampleRateHz;

const silentFrame = new Uint8Array(frameSamples).fill(silentSample);

/** The recording's way to the spool. The sink copies audio. */
export type PartSink = {
  put(part: RecordingPart): void;
};

export class RecorderOfCall implements CallRecorder {
  readonly #sink: PartSink;
  readonly #report: (report: RecordingReport) => void;
  readonly #buffer = new TwoChannelBuffer();
  readonly #pauses: Pauses;
  readonly #holdBack: number;
  /** Pauses that aren't over, or aren't written, the oldest first. */
  readonly #openPauses: Pause[] = [];
  /** Whether the beginning of the first open pause is written. */
  #isPauseWritten = false;
  /** Number of samples so far, always whole frames. */
  #end = 0;
  /** Everything before this position has left. */
  #sent = 0;
  /** The RTP timestamp of our audio at position `#end`. */
  #endTimestamp: number;
  #hasHeard = false;
  #isOver = false;

  constructor(
    start: RecordingStart,
    timestamp: number,
    sink: PartSink,
    report: (report: RecordingReport) => void,
  ) {
    this.#sink = sink;
    this.#report = report;
    this.#endTimestamp = timestamp;
    this.#holdBack = start.pauseOnKeys ? keyHoldBackSamples : holdBackSamples;
    this.#pauses = new Pauses(start.pauseOnKeys, {
      onPaused: (pause) => {
        this.#openPauses.push(pause);
        report({ kind: 'paused', offsetMs: pause.from / samplesPerMs, by: pause.by });
      },
      onResumed: () => report({ kind: 'resumed', offsetMs: this.#end / samplesPerMs }),
    });
  }

  /** Everything before this position has been passed on. */
  get sent(): number {
    return this.#sent;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  hear(frame: Uint8Array): void {
    if (this.#isOver) return;
    this.#buffer.writeLeft(this.#end, frame);
    this.#hasHeard = true;
  }

  say(packet: Uint8Array, start: number, codec: Codec, timestamp: number): void {
    if (this.#isOver) return;
    let ahead = timestampDistance(timestamp, this.#endTimestamp);
    if (!isNearClock(ahead)) {
      // Our clock was moved ahead by what a relay had sent early, again and again.
      this.#endTimestamp = timestamp;
      ahead = 0;
    }
    if (this.#end + ahead >= 0) this.#buffer.writeRight(this.#end + ahead, packet, start, codec);
  }

  tick(): void {
    if (this.#isOver) return;
    if (!this.#hasHeard) this.#buffer.writeLeft(this.#end, silentFrame);
    this.#hasHeard = false;
    this.#end += frameSamples;
    this.#endTimestamp = (this.#endTimestamp + frameSamples) >>> 0;
    this.#pauses.tick(this.#end);
    const due = this.#end - this.#holdBack;
    if (due - this.#sent >= partSamples) this.#send(due);
  }

  beginKey(agoMs: number): void {
    if (this.#isOver) return;
    this.#pauses.beginKey(Math.round(agoMs * samplesPerMs), this.#end, this.#sent);
  }

  endKey(): void {
    if (!this.#isOver) this.#pauses.endKey(this.#end);
  }

  pause(): void {
    if (!this.#isOver) this.#pauses.command(true, this.#end);
  }

  resume(): void {
    if (!this.#isOver) this.#pauses.command(false, this.#end);
  }

  stop(reason: RecordingStop): void {
    if (this.#isOver) return;
    this.#send(this.#end);
    this.#isOver = true;
    this.#sink.put({ kind: 'end', at: this.#end, end: {} });
    const pausedMs = this.#pauses.pausedSamples(this.#end) / samplesPerMs;
    this.#report({ kind: 'stopped', reason, durationMs: this.#end / samplesPerMs, pausedMs });
  }

  fail(): void {
    if (this.#isOver) return;
    this.#sink.put({ kind: 'end', at: this.#sent, end: { incomplete: 'media-failed' } });
    this.failBecause('media-failed');
  }

  /** Ends the recording because what was recorded can't be written. */
  failBecause(reason: RecordingFault): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#report({ kind: 'failed', reason, durationMs: this.#end / samplesPerMs });
  }

  /** Sends what isn't paused up to this position. */
  #send(until: number): void {
    while (this.#sent < until) {
      const pause = this.#openPauses[0];
      if (pause === undefined || pause.from >= until) {
        this.#sendAudio(until);
        return;
      }
      this.#sendAudio(pause.from);
      this.#sendPause(pause, until);
    }
  }

  #sendAudio(until: number): void {
    while (this.#sent < until) {
      const [at, audio] = [this.#sent, this.#buffer.next(until)];
      this.#sent += audio.length / channelCount;
      this.#sink.put({ kind: 'audio', at, audio });
      this.#buffer.skip(this.#sent);
    }
  }

  #sendPause(pause: Pause, until: number): void {
    if (!this.#isPauseWritten) {
      this.#sink.put({ kind: 'pause', at: pause.from, by: pause.by });
      this.#isPauseWritten = true;
    }
    const isOver = pause.until !== undefined && pause.until <= until;
    this.#sent = isOver ? (pause.until as number) : until;
    this.#buffer.skip(this.#sent);
    if (!isOver) return;
    this.#sink.put({ kind: 'resume', at: this.#sent });
    this.#isPauseWritten = false;
    this.#openPauses.shift();
  }
}
