// Compares the mailbox's recording with the message that the gateway played to it in the demo.

import type { SandboxCallSummary } from '../../embedded/sandbox/sandbox-call.ts';
import { readMulawWav, recordingUrl } from '../../embedded/sandbox/wav-file.ts';
import { decodeTable } from '../../media/g711.ts';

export const demoSound = 'demo-message';
export const messageRecording = 'bot-message';
/** We use this many samples from the start of the message to find it in the recording. */
const searchedSamples = 2_000;
const samplesPerMs = 8;

export type LeftMessage = {
  /** Time between the end of the beep and the start of the message in the recording. */
  readonly startsAfterMs: number;
  /** Duration of the original message. */
  readonly messageMs: number;
  /** Correlation between the recorded message and the original, which is 1 if they are equal. */
  readonly correlation: number;
};

/**
 * Finds the message in a call's recording.
 *
 * @returns undefined if the callee didn't record anything
 */
export function leftMessageIn({
  recorded,
  codec = 'PCMU',
}: SandboxCallSummary): LeftMessage | undefined {
  if (recorded === undefined) return undefined;
  const samples = Float64Array.from(recorded, (byte) => decodeTable[codec][byte] ?? 0);
  const message = Float64Array.from(readMulawWav(recordingUrl(messageRecording)));
  const beginning = message.subarray(0, searchedSamples);
  let at = 0;
  let best = 0;
  for (let from = 0; from + searchedSamples <= samples.length; from += 1) {
    const likeness = correlate(samples.subarray(from, from + searchedSamples), beginning);
    if (likeness > best) [at, best] = [from, likeness];
  }
  return {
    startsAfterMs: Math.round(at / samplesPerMs),
    messageMs: Math.round(message.length / samplesPerMs),
    correlation: correlate(samples.subarray(at, at + message.length), message),
  };
}

export function problemsOfMessage(left: LeftMessage | undefined): readonly string[] {
  if (left === undefined) return ['the mailbox recorded nothing'];
  return left.correlation < 0.95 ? ['the mailbox has not recorded the whole message'] : [];
}

export function describeMessage(left: LeftMessage | undefined): string {
  if (left === undefined) return 'nothing';
  const { startsAfterMs, messageMs, correlation } = left;
  return `it begins ${startsAfterMs} ms after the beep, ${(messageMs / 1_000).toFixed(1)} s, correlation ${correlation.toFixed(3)}`;
}

/**
 * Correlates two signals over the length of `other`. If `one` is shorter, we treat the rest as
 * silence.
 */
function correlate(one: Float64Array, other: Float64Array): number {
  let product = 0;
  let energy = 0;
  let otherEnergy = 0;
  for (let index = 0; index < other.length; index += 1) {
    const a = one[index] ?? 0;
    const b = other[index] ?? 0;
    product += a * b;
    energy += a * a;
    otherEnergy += b * b;
  }
  return energy === 0 || otherEnergy === 0 ? 0 : product / Math.sqrt(energy * otherEnergy);
}
