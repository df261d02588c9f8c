// A call with plans on a clock that the test controls. A far end says what the test gives it and
// echoes what it hears. The session has the real detector. The line records when something was
// heard and sent.

import { createDetector } from '../../../src/amd/detector.ts';
import { type AmdSettings, defaultAmdTimers } from '../../../src/calls/call-types.ts';
import type { CallPlans, VoicemailSettings } from '../../../src/calls/plans/plans.ts';
import type { Sound } from '../../../src/calls/playback/playback.ts';

import {
  readMulawBytes,
  readMulawWav,
  recordingUrl,
} from '../../../src/embedded/sandbox/wav-file.ts';
import type { CreateDetector } from '../../../src/media/detector-port.ts';
import { decodeTable, encode } from '../../../src/media/g711.ts';
import { testSound } from '../../support/test-sound.ts';
import { remote, SessionBench } from './session-bench.ts';

export const frameMs = 20;
const frameSamples = 160;

const audio = readMulawBytes(recordingUrl('bot-message'));
export const message: Sound = testSound('sound:offer', audio);
export const greeting = readMulawWav(recordingUrl('voicemail-greeting'));
export const person = readMulawWav(recordingUrl('person-hello'));

export const voicemail: VoicemailSettings = {
  ...{ sound: message, ifNoBeep: 'play', waitForBeepMs: 4_000, maxMs: 60_000 },
};

export type PlannedLineOptions = {
  readonly plans?: CallPlans;
  readonly settings?: Partial<AmdSettings>;
  readonly createDetector?: CreateDetector;
  /** Level of the echo in dB relative to what the far end hears, and its delay. */
  readonly echo?: { readonly db: number; readonly delayMs: number };
};

export class PlannedLine {
  readonly bench: SessionBench;
  readonly #echo: PlannedLineOptions['echo'];
  /** The far end's audio since the answer. */
  nowMs = 0;
  /** When each event was reported. */
  readonly log: string[] = [];

  constructor({ plans = { voicemail }, settings, echo, ...options }: PlannedLineOptions = {}) {
    this.bench = new SessionBench(options.createDetector ?? createDetector);
    this.#echo = echo;
    this.bench.session.applyRemote(remote, 'answer');
    this.bench.session.startDetection({ timers: defaultAmdTimers, ...settings }, plans);
  }

  /** Lets the far end say this. What the call sends meanwhile comes back as an echo. */
  hear(samples: Int16Array): void {
    const { bench } = this;
    for (let at = 0; at < samples.length; at += frameSamples) {
      const frame = new Int16Array(frameSamples);
      frame.set(samples.subarray(at, at + frameSamples));
      this.#addEcho(frame);
      bench.receive(encode('PCMU', frame));
      bench.tick(1);
      this.nowMs += frameMs;
      this.#note();
    }
  }

  get isOver(): boolean {
    return this.bench.plans.some(({ kind }) => kind === 'over');
  }

  /** Returns what the far end recorded since then. */
  recorded(fromMs = 0): Uint8Array {
    const packets = this.bench.sent.slice(Math.max(0, fromMs / frameMs));
    return Uint8Array.from(packets.flatMap(({ payload }) => payload));
  }

  #addEcho(frame: Int16Array): void {
    if (this.#echo === undefined) return;
    const gain = 10 ** (this.#echo.db / 20);
    const packet = this.bench.sent[this.bench.sent.length - 1 - this.#echo.delayMs / frameMs];
    for (const [index, byte] of (packet?.payload ?? []).entries()) {
      const sum = (frame[index] ?? 0) + gain * (decodeTable.PCMU[byte] ?? 0);
      frame[index] = Math.max(-32_768, Math.min(32_767, Math.round(sum)));
    }
  }

  #note(): void {
    const { amd, playbacks, plans } = this.bench;
    const reported = [
      ...amd.map(({ event, round }) => (round === undefined ? event : `${event} ${round}`)),
      ...playbacks.map((one) =>
        one.kind === 'started'
          ? `${one.source} started${one.restart === undefined ? '' : ` ${one.restart}`}`
          : `${one.source} ${one.reason}`,
      ),
      ...plans.flatMap((one) => {
        if (one.kind === 'held' || one.kind === 'done') return [];
        return [one.kind === 'over' ? one.outcome : `round ${one.round}`];
      }),
    ];
    if (reported.length > this.log.length) {
      const unknown = [...reported];
      for (const known of this.log) unknown.splice(unknown.indexOf(known), 1);
      this.log.push(...unknown);
    }
  }
}

/**
 * Returns where `sound` starts in `recorded`.
 * @returns undefined if `recorded` does not contain all of it
 */
export function findWhole(recorded: Uint8Array, sound: Uint8Array): number | undefined {
  const at = Buffer.from(recorded).indexOf(Buffer.from(sound));
  return at === -1 ? undefined : at;
}
