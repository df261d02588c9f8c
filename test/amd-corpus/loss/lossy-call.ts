// Plays a recording to detection as a call does: in packets of 20 ms, some of which are lost,
// through the jitter buffer.

import { createDetector } from '../../../src/amd/detector.ts';
import type { AmdSettings } from '../../../src/calls/call-types.ts';
import type { AmdEvent } from '../../../src/calls/detection/amd-event.ts';
import { decodeTable, encode, silenceByte } from '../../../src/media/g711.ts';
import {
  createJitterStatistics,
  createPlayoutCounts,
  frameSamples,
} from '../../../src/media/rtp/jitter-buffer.ts';
import { ReceivedAudio } from '../../../src/media/rtp/received-audio.ts';
import { createRtpHeader } from '../../../src/media/rtp/rtp-packet.ts';
import type { Random } from '../../amd/made-up-audio.ts';

/**
 * What detection gets: `arrived`, with lost frames marked as such, as in a call, or `concealed`,
 * i.e. what a bot hears, as if it had arrived.
 */
export type Ear = 'arrived' | 'concealed';

export type Line = {
  readonly lost: readonly boolean[];
  readonly ear: Ear;
  /** True if the far end suppresses silence, and sends comfort noise instead. */
  readonly isSuppressed: boolean;
};

/** Longer than any timer: whatever it hears, detection has stopped by then. */
const longestFrames = 3_500;

/**
 * Decides for each packet whether it's lost. Losses come in bursts of `burst` packets on average
 * (Gilbert's model). If it's 1, each packet is lost independently of the others.
 */
export function losses(lossPercent: number, burst: number, random: Random): readonly boolean[] {
  const share = lossPercent / 100;
  const begins = burst === 1 ? share : share / (burst * (1 - share));
  const goesOn = burst === 1 ? share : 1 - 1 / burst;
  let isLost = false;
  return Array.from({ length: longestFrames }, () => {
    isLost = random() < (isLost ? goesOn : begins);
    return isLost;
  });
}

/** Returns the events of a call in which this recording comes over this line. */
export function listenOver(
  { lost, ear, isSuppressed }: Line,
  samples: Int16Array,
  settings: AmdSettings,
): readonly AmdEvent[] {
  const audio = new ReceivedAudio(createJitterStatistics(), createPlayoutCounts());
  const farEnd = new FarEnd(samples, audio, isSuppressed);
  const detector = createDetector(settings);
  const [heard, arrived] = [new Int16Array(frameSamples), new Int16Array(frameSamples)];
  const events: AmdEvent[] = [];
  for (let index = 0; index < longestFrames && !detector.done; index += 1) {
    farEnd.send(index, lost[index] === true);
    const isReceived = audio.take(heard, arrived);
    const isMadeUp = ear === 'concealed' && heard.some((sample) => sample !== 0);
    events.push(...detector.push(isMadeUp ? heard : arrived, !isReceived && !isMadeUp));
  }
  events.push(...detector.stop('recording-ended'));
  return events;
}

/** Sends a recording in packets of 20 ms, and then silence. */
class FarEnd {
  readonly #coded: Uint8Array;
  readonly #audio: ReceivedAudio;
  readonly #suppression: SilenceSuppression | undefined;
  readonly #silence = new Uint8Array(frameSamples).fill(silenceByte.PCMU);
  readonly #header = createRtpHeader();

  constructor(samples: Int16Array, audio: ReceivedAudio, isSuppressed: boolean) {
    this.#coded = encode('PCMU', samples);
    this.#audio = audio;
    this.#suppression = isSuppressed ? new SilenceSuppression(samples) : undefined;
  }

  send(index: number, isLost: boolean): void {
    const sent = this.#suppression?.next(index) ?? 'audio';
    if (sent === 'nothing') return;
    this.#header.sequence += 1;
    this.#header.timestamp = index * frameSamples;
    if (isLost) return;
    if (sent === 'audio') this.#sendAudio();
    else this.#audio.pause(Uint8Array.of(sent), { ...this.#header, payloadEnd: 1 });
  }

  #sendAudio(): void {
    const { timestamp } = this.#header;
    const coded = this.#coded.subarray(timestamp, timestamp + frameSamples);
    const packet = coded.length === frameSamples ? coded : this.#silence;
    this.#header.payloadEnd = frameSamples;
    this.#audio.put(packet, this.#header, decodeTable.PCMU);
  }
}

/** 200 ms: pauses within a word are sent. */
const hangoverFrames = 10;
/** A comfort noise packet follows every 200 ms of silence, so that a lost one doesn't matter. */
const noiseIntervalFrames = 10;
/** Frames up to this much louder than the line's noise are silence: 6 dB. */
const aboveNoise = 4;
const overload = 32_124;

/** Decides what a far end sends in place of each frame (RFC 3389, section 5). */
class SilenceSuppression {
  readonly #powers: readonly number[];
  readonly #noisePower: number;
  #quietFrames = 0;

  constructor(samples: Int16Array) {
    this.#powers = Array.from({ length: Math.floor(samples.length / frameSamples) }, (_, index) =>
      powerOf(samples.subarray(index * frameSamples, (index + 1) * frameSamples)),
    );
    // A tenth of every recording is a pause.
    this.#noisePower = this.#powers.toSorted((a, b) => a - b)[(this.#powers.length / 10) | 0] ?? 0;
  }

  /** Returns what is sent for this frame. A number is the level of comfort noise, in -dBov. */
  next(index: number): 'audio' | 'nothing' | number {
    const power = this.#powers[index] ?? 0;
    this.#quietFrames = power <= this.#noisePower * aboveNoise ? this.#quietFrames + 1 : 0;
    const pausedFrames = this.#quietFrames - hangoverFrames;
    if (pausedFrames < 0) return 'audio';
    return pausedFrames % noiseIntervalFrames === 0 ? dbovOf(power) : 'nothing';
  }
}

function powerOf(frame: Int16Array): number {
  return frame.reduce((sum, sample) => sum + sample ** 2, 0) / frameSamples;
}

function dbovOf(power: number): number {
  return Math.round(Math.min(127, -10 * Math.log10(Math.max(1e-9, power) / overload ** 2)));
}
