// What the phones of the meter run say. The greeting is what a listener would call it: from the
// first to the last frame that can be heard, measured in the recording and not by detection.

import { joined, silence, tone } from '../../../src/embedded/sandbox/tones.ts';
import { readMulawWav, recordingUrl } from '../../../src/embedded/sandbox/wav-file.ts';
import { encode } from '../../../src/media/g711.ts';
import type { Voice } from '../../support/phone-voices.ts';

const frameSamples = 160;
const frameMs = 20;
const samplesPerMs = 8;
/** −45 dBFS. The quietest parts of the recordings' speech are louder. */
const audiblePower = 10 ** -4.5;

const pickUpMs = 300;
const recording = (name: string): Int16Array => readMulawWav(recordingUrl(name));
const machine = (): Int16Array => recording('voicemail-greeting').subarray(0, 1_700 * samplesPerMs);
const beep = (): Int16Array => tone([1_000], 500, -9);

const recipes = {
  hello: () => ({ greeting: recording('person-hello') }),
  name: () => ({ greeting: recording('person-name') }),
  sentence: () => ({ greeting: recording('talker-interruption') }),
  nothing: () => ({ greeting: new Int16Array(0) }),
  /** It speaks as briefly as a person does, and never beeps, so detection takes it for one. */
  briefMachine: () => ({ greeting: machine() }),
  /** Detection takes it for a person until it beeps, within the two seconds or after them. */
  earlyBeep: () => ({ greeting: machine(), after: [silence(1_200), beep()] }),
  lateBeep: () => ({ greeting: machine(), after: [silence(2_700), beep()] }),
  mailbox: () => ({ greeting: recording('voicemail-greeting'), after: [silence(400), beep()] }),
} as const satisfies Record<
  string,
  () => { readonly greeting: Int16Array; readonly after?: readonly Int16Array[] }
>;
export type VoiceKind = keyof typeof recipes;

export type MeterVoice = Voice & {
  /** From the answer, as the phone plans them. Both are 0 if nothing is said. */
  readonly beginsMs: number;
  readonly endsMs: number;
  readonly lengthMs: number;
};

const made = new Map<VoiceKind, MeterVoice>();

export function voiceOf(kind: VoiceKind): MeterVoice {
  const known = made.get(kind) ?? make(kind);
  made.set(kind, known);
  return known;
}

function make(kind: VoiceKind): MeterVoice {
  const { greeting, after = [] }: { greeting: Int16Array; after?: readonly Int16Array[] } =
    recipes[kind]();
  const before = silence(pickUpMs);
  const samples = joined([before, greeting, ...after]);
  const mulaw = Buffer.from(encode('PCMU', samples));
  const heard = audibleFrames(joined([before, greeting]));
  const [from, last] = [heard[0], heard.at(-1)];
  const lengthMs = samples.length / samplesPerMs;
  if (from === undefined || last === undefined) return { mulaw, beginsMs: 0, endsMs: 0, lengthMs };
  const until = last + 1;
  return {
    ...{ mulaw, greeting: { from, until }, lengthMs },
    ...{ beginsMs: from * frameMs, endsMs: until * frameMs },
  };
}

function audibleFrames(samples: Int16Array): readonly number[] {
  const frames: number[] = [];
  for (let start = 0; start + frameSamples <= samples.length; start += frameSamples) {
    let energy = 0;
    for (const sample of samples.subarray(start, start + frameSamples)) energy += sample ** 2;
    if (energy / frameSamples / 32_768 ** 2 > audiblePower) frames.push(start / frameSamples);
  }
  return frames;
}
