// Frames of µ-law audio that name their speaker and their number, so that a recording shows exactly
// which frames it contains, where, and whether each of their samples is right.

import { decodeTable } from '../../../src/media/g711.ts';

export const frameBytes = 160;
export const framesPerSecond = 50;
/**
 * The marks use the bytes below this one. 0x7f is a second zero, which decoding and encoding turn
 * into 0xff.
 */
const base = 0x7f;
const headBytes = 6;
/** The speaker of the sound that the gateway plays. */
export const soundSpeaker = base * base - 1;
export const soundFrames = 20 * framesPerSecond;

export type Mark = { readonly speaker: number; readonly frame: number };

/** @param speaker below `soundSpeaker`, unless it is the sound */
export function markedFrame({ speaker, frame }: Mark): Buffer {
  const bytes = Buffer.alloc(frameBytes);
  const digits = [speaker, Math.floor(speaker / base), frame, Math.floor(frame / base)];
  for (const [at, digit] of digits.entries()) bytes[at] = digit % base;
  bytes[4] = Math.floor(frame / base / base) % base;
  bytes[5] = (speaker + frame + 1) % base;
  let state = (Math.imul(speaker + 1, 0x9e37_79b1) ^ Math.imul(frame + 1, 0x85eb_ca6b)) >>> 0;
  for (let at = headBytes; at < frameBytes; at += 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    bytes[at] = (state >>> 16) % base;
  }
  return bytes;
}

/** @returns undefined unless every sample is that of a mark */
export function readMark(audio: Buffer): Mark | undefined {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, check] = audio;
  const speaker = a + b * base;
  const frame = c + d * base + e * base * base;
  if (check !== (speaker + frame + 1) % base) return undefined;
  return markedFrame({ speaker, frame }).equals(audio) ? { speaker, frame } : undefined;
}

/** The sound that the gateway plays to everybody. */
export function markedSound(): Int16Array {
  const frames = Array.from({ length: soundFrames }, (_, frame) =>
    markedFrame({ speaker: soundSpeaker, frame }),
  );
  return Int16Array.from(Buffer.concat(frames), (byte) => decodeTable.PCMU[byte] ?? 0);
}
