// Reads the recordings that are part of the package. They're RIFF/WAVE files with 8 kHz G.711 µ-law
// audio and one channel. Any other format means that the installation is broken.

import { readFileSync } from 'node:fs';
import { decodeTable } from '../../media/g711.ts';

const mulawFormat = 7;

/**
 * This path works in both `src/embedded/sandbox` and `dist/embedded/sandbox`, because their depth
 * is the same.
 */
const audioFolder = new URL('../../../src/embedded/sandbox/audio/', import.meta.url);

/** @param name one of our recordings, without `.wav` */
export function recordingUrl(name: string): URL {
  return new URL(`${name}.wav`, audioFolder);
}

/** Returns the decoded samples. @throws Error if the file is missing or has another format. */
export function readMulawWav(url: URL): Int16Array {
  return Int16Array.from(readMulawBytes(url), (byte) => decodeTable.PCMU[byte] ?? 0);
}

/** Returns the µ-law bytes. @throws Error if the file is missing or has another format. */
export function readMulawBytes(url: URL): Uint8Array {
  const file = readFileSync(url);
  let format: number | undefined;
  // After `RIFF`, a length and `WAVE`, the file consists of chunks. Each chunk contains a
  // four-letter id, a length, and content that's padded to an even length.
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
