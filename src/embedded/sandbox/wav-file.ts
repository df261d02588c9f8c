// Reads the sandbox's own recordings: RIFF/WAVE, G.711 µ-law, 8 kHz, one channel. Anything else is a broken installation.

import { readFileSync } from 'node:fs';
import { decodeTable } from '../../media/g711.ts';

const mulawFormat = 7;

/** @throws Error when the file is missing or of another format. */
export function readMulawWav(url: URL): Int16Array {
  const file = readFileSync(url);
  let format: number | undefined;
  // After `RIFF`, a length and `WAVE` come chunks: four letters, a length, the content, padded to even.
  for (let at = 12; at + 8 <= file.length; ) {
    const id = file.toString('latin1', at, at + 4);
    const length = file.readUInt32LE(at + 4);
    const content = file.subarray(at + 8, at + 8 + length);
    if (id === 'fmt ' && content.length >= 2) format = content.readUInt16LE(0);
    if (id === 'data' && format === mulawFormat) return decoded(content);
    at += 8 + length + (length % 2);
  }
  throw new Error(`${url.pathname} is not a µ-law WAV file`);
}

function decoded(bytes: Uint8Array): Int16Array {
  return Int16Array.from(bytes, (byte) => decodeTable.PCMU[byte] ?? 0);
}
