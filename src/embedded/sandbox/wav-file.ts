// Reads the recordings that are shipped: RIFF/WAVE, G.711 µ-law, 8 kHz, one channel. Anything else is a broken installation.

import { readFileSync } from 'node:fs';
import { decodeTable } from '../../media/g711.ts';

const mulawFormat = 7;

/** The same two steps up to the package root from `src/embedded/sandbox` and from `dist/embedded/sandbox`. */
const audioFolder = new URL('../../../src/embedded/sandbox/audio/', import.meta.url);

/** One of the recordings that are shipped, without `.wav`. */
export function recordingUrl(name: string): URL {
  return new URL(`${name}.wav`, audioFolder);
}

/** As samples. @throws Error when the file is missing or of another format. */
export function readMulawWav(url: URL): Int16Array {
  return Int16Array.from(readMulawBytes(url), (byte) => decodeTable.PCMU[byte] ?? 0);
}

/** As it is coded. @throws Error when the file is missing or of another format. */
export function readMulawBytes(url: URL): Uint8Array {
  const file = readFileSync(url);
  let format: number | undefined;
  // After `RIFF`, a length and `WAVE` come chunks: four letters, a length, the content, padded to even.
  for (let at = 12; at + 8 <= file.length; ) {
    const id = file.toString('latin1', at, at + 4);
    const length = file.readUInt32LE(at + 4);
    const content = file.subarray(at + 8, at + 8 + length);
    if (id === 'fmt ' && content.length >= 2) format = content.readUInt16LE(0);
    if (id === 'data' && format === mulawFormat) return content;
    at += 8 + length + (length % 2);
  }
  throw new Error(`${url.pathname} is not a µ-law WAV file`);
}
