// Reads the WAV files that API clients upload: RIFF/WAVE with PCM, float, µ-law or A-law, either
// plain or as WAVE_FORMAT_EXTENSIBLE. We don't trust any length in the file. Nothing here throws.
// Instead, problems are described in words.

import { decodeTable } from '../media/g711.ts';

export type WavFile = {
  readonly codec: WavCodec;
  readonly channels: number;
  readonly sampleRateHz: number;
  /** Number of samples in each channel, at least 1. */
  readonly length: number;
  /**
   * Returns a sample as a 16-bit value, regardless of the file's format. `index` and `channel`
   * count from 0.
   */
  readonly sampleAt: (index: number, channel: number) => number;
};

export type WavResult =
  | { readonly ok: true; readonly wav: WavFile }
  | { readonly ok: false; readonly problem: string };

type WavCodec = 'PCM' | 'float' | 'A-law' | 'µ-law';

type WavFormat = Pick<WavFile, 'codec' | 'channels' | 'sampleRateHz'> & {
  /** Bytes per sample of one channel. */
  readonly bytes: number;
};

/** We don't upsample, so the minimum is the telephone sample rate. */
const minRateHz = 8_000;
/** The channels are limited so that a broken header can't dictate buffer sizes. */
const maxChannels = 32;

const codecs: Readonly<Record<number, WavCodec>> = { 1: 'PCM', 3: 'float', 6: 'A-law', 7: 'µ-law' };
const possibleBits: Readonly<Record<WavCodec, readonly number[]>> = {
  PCM: [8, 16, 24, 32],
  float: [32, 64],
  'A-law': [8],
  'µ-law': [8],
};
const extensibleFormat = 0xfffe;
/** The constant tail of KSDATAFORMAT_SUBTYPE_* GUIDs. The plain format code comes before it. */
const subFormatTail = '000000001000800000aa00389b71';

export function openWav(file: Buffer, { maxRateHz }: { maxRateHz: number }): WavResult {
  if (file.length < 12 || file.toString('latin1', 0, 4) !== 'RIFF') {
    return unreadable('not a WAV file (no RIFF header)');
  }
  if (file.toString('latin1', 8, 12) !== 'WAVE') return unreadable('a RIFF file, but not WAVE');
  let format: WavFormat | string | undefined;
  for (const { id, content } of chunksOf(file)) {
    if (id === 'fmt ') format = readFormat(content, maxRateHz);
    if (id === 'data') return openData(content, format);
  }
  return unreadable(typeof format === 'string' ? format : 'no audio data in the file');
}

/**
 * Yields the file's chunks. A chunk consists of a four-letter id, a length, and the content, padded
 * to an even length. Programs that write to a pipe can't fill in the length afterwards. If such a
 * program has left a length of 4 GB, the content extends to the end of the file. A length of 0
 * means that the content is empty.
 */
function* chunksOf(file: Buffer): Generator<{ readonly id: string; readonly content: Buffer }> {
  for (let at = 12; at + 8 <= file.length; ) {
    const id = file.toString('latin1', at, at + 4);
    const length = file.readUInt32LE(at + 4);
    yield { id, content: file.subarray(at + 8, Math.min(file.length, at + 8 + length)) };
    at += 8 + length + (length % 2);
  }
}

function openData(content: Buffer, format: WavFormat | string | undefined): WavResult {
  if (format === undefined) return unreadable('the data chunk comes before the format chunk');
  if (typeof format === 'string') return unreadable(format);
  const { codec, channels, sampleRateHz, bytes } = format;
  const length = Math.floor(content.length / (bytes * channels));
  if (length === 0) return unreadable('no audio data in the file');
  const readAt = sampleReader(content, format);
  const sampleAt = (index: number, channel: number) => readAt((index * channels + channel) * bytes);
  return { ok: true, wav: { codec, channels, sampleRateHz, length, sampleAt } };
}

function readFormat(chunk: Buffer, maxRateHz: number): WavFormat | string {
  if (chunk.length < 16) return 'the format chunk is truncated';
  const codec = readCodec(chunk);
  const channels = chunk.readUInt16LE(2);
  const sampleRateHz = chunk.readUInt32LE(4);
  const bits = chunk.readUInt16LE(14);
  if (typeof codec === 'number') {
    return `unknown format ${codec}; PCM, float, µ-law and A-law are supported`;
  }
  if (channels < 1 || channels > maxChannels) return `${channels} channels`;
  if (sampleRateHz < minRateHz || sampleRateHz > maxRateHz) {
    return `a sample rate of ${sampleRateHz} Hz; ${minRateHz} to ${maxRateHz} are supported`;
  }
  const widths = possibleBits[codec];
  return widths.includes(bits)
    ? { codec, channels, sampleRateHz, bytes: bits / 8 }
    : `${bits}-bit ${codec}; ${widths.join(', ')} are supported`;
}

/** Returns the codec in a format chunk, or the format's number if it's unknown. */
function readCodec(chunk: Buffer): WavCodec | number {
  const code = chunk.readUInt16LE(0);
  if (code !== extensibleFormat) return codecs[code] ?? code;
  if (chunk.length < 40 || chunk.toString('hex', 26, 40) !== subFormatTail) return code;
  const inner = chunk.readUInt16LE(24);
  return codecs[inner] ?? inner;
}

function sampleReader(content: Buffer, { codec, bytes }: WavFormat): (at: number) => number {
  if (codec === 'float') {
    return bytes === 4
      ? (at) => clip(content.readFloatLE(at) * 32_768)
      : (at) => clip(content.readDoubleLE(at) * 32_768);
  }
  if (codec !== 'PCM') {
    const table = decodeTable[codec === 'µ-law' ? 'PCMU' : 'PCMA'];
    return (at) => table[content[at] ?? 0] ?? 0;
  }
  // 8-bit samples are unsigned, while wider ones are signed. We keep the top 16 bits, because the
  // rest is below the noise on any phone line.
  if (bytes === 1) return (at) => ((content[at] ?? 128) - 128) << 8;
  return (at) => content.readInt16LE(at + bytes - 2);
}

/** Clips a sample to 16 bits. NaN becomes silence. */
function clip(sample: number): number {
  return Math.max(-32_768, Math.min(32_767, Math.round(sample))) || 0;
}

function unreadable(problem: string): WavResult {
  return { ok: false, problem };
}
