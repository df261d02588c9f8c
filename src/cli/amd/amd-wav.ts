// WAV files of strangers: RIFF/WAVE with PCM, float, µ-law or A-law, any rate from 8 kHz on, one channel of however many. Every
// length in the file is a claim that is checked; what cannot be read is said in words, never thrown.

import { decodeTable } from '../../media/g711.ts';
import { resample } from './amd-resample.ts';

export type Recording = {
  /** 8 kHz, whatever the file has. */
  readonly samples: Int16Array;
  readonly codec: WavCodec;
  readonly sampleRateHz: number;
  readonly channels: number;
};

export type WavResult =
  | { readonly kind: 'recording'; readonly recording: Recording }
  | { readonly kind: 'unreadable'; readonly problem: string };

type WavCodec = 'PCM' | 'float' | 'A-law' | 'µ-law';

type WavFormat = {
  readonly codec: WavCodec;
  readonly channels: number;
  readonly sampleRateHz: number;
  /** Of one sample of one channel. */
  readonly bytes: number;
};

export const detectorRateHz = 8_000;
/** Beyond these nothing is a telephone's recording, and the numbers of a broken header become buffers. */
const highestRateHz = 192_000;
const mostChannels = 32;
/** Longer than detection ever runs (two timers of 120 s, a greeting of 60 s): the rest of a file is not looked at. */
export const longestRecordingMs = 300_000;

const codecs: Readonly<Record<number, WavCodec>> = { 1: 'PCM', 3: 'float', 6: 'A-law', 7: 'µ-law' };
const possibleBits: Readonly<Record<WavCodec, readonly number[]>> = {
  PCM: [8, 16, 24, 32],
  float: [32],
  'A-law': [8],
  'µ-law': [8],
};
const extensibleFormat = 0xfffe;
/** KSDATAFORMAT_SUBTYPE_*: the old code in front, this behind it. */
const subFormatTail = '000000001000800000aa00389b71';

/** `channel` counts from 1. */
export function readWav(file: Buffer, channel: number): WavResult {
  if (file.length < 12 || file.toString('latin1', 0, 4) !== 'RIFF') {
    return unreadable('not a WAV file (no RIFF header)');
  }
  if (file.toString('latin1', 8, 12) !== 'WAVE') return unreadable('a RIFF file, but not WAVE');
  let format: WavFormat | string | undefined;
  for (const { id, content } of chunksOf(file)) {
    if (id === 'fmt ') format = readFormat(content);
    if (id === 'data') return readData(content, format, channel);
  }
  return unreadable(typeof format === 'string' ? format : 'no audio data in it');
}

/** Four letters, a length, the content, padded to even. Programs that write to a pipe leave lengths of 0 or 4 GB. */
function* chunksOf(file: Buffer): Generator<{ readonly id: string; readonly content: Buffer }> {
  for (let at = 12; at + 8 <= file.length; ) {
    const id = file.toString('latin1', at, at + 4);
    const length = file.readUInt32LE(at + 4);
    yield { id, content: file.subarray(at + 8, Math.min(file.length, at + 8 + length)) };
    at += 8 + length + (length % 2);
  }
}

function readData(
  content: Buffer,
  format: WavFormat | string | undefined,
  channel: number,
): WavResult {
  if (format === undefined) return unreadable('the data come before the format');
  return typeof format === 'string' ? unreadable(format) : decode(content, format, channel);
}

function readFormat(chunk: Buffer): WavFormat | string {
  if (chunk.length < 16) return 'its format chunk is cut off';
  const codec = codecOf(chunk);
  const channels = chunk.readUInt16LE(2);
  const sampleRateHz = chunk.readUInt32LE(4);
  const bits = chunk.readUInt16LE(14);
  if (typeof codec === 'number') {
    return `format ${codec} is not known; PCM, float, µ-law and A-law are`;
  }
  if (channels < 1 || channels > mostChannels) return `${channels} channels`;
  if (sampleRateHz < detectorRateHz || sampleRateHz > highestRateHz) {
    return `a sample rate of ${sampleRateHz} Hz; ${detectorRateHz} to ${highestRateHz} are possible`;
  }
  const widths = possibleBits[codec];
  return widths.includes(bits)
    ? { codec, channels, sampleRateHz, bytes: bits / 8 }
    : `${codec} of ${bits} bits; ${widths.join(', ')} are possible`;
}

/** A number: a format that we do not know. */
function codecOf(chunk: Buffer): WavCodec | number {
  const code = chunk.readUInt16LE(0);
  if (code !== extensibleFormat) return codecs[code] ?? code;
  if (chunk.length < 40 || chunk.toString('hex', 26, 40) !== subFormatTail) return code;
  const inner = chunk.readUInt16LE(24);
  return codecs[inner] ?? inner;
}

function decode(content: Buffer, format: WavFormat, channel: number): WavResult {
  const { codec, channels, sampleRateHz, bytes } = format;
  if (channel > channels) return unreadable(`no channel ${channel}; it has ${channels}`);
  const most = Math.ceil((longestRecordingMs / 1_000) * sampleRateHz);
  const count = Math.min(Math.floor(content.length / (bytes * channels)), most);
  if (count === 0) return unreadable('no audio data in it');
  const sampleAt = sampleReader(content, format);
  const samples = new Int16Array(count);
  for (let index = 0; index < count; index += 1) {
    samples[index] = sampleAt((index * channels + channel - 1) * bytes);
  }
  return {
    kind: 'recording',
    recording: {
      samples: resample(samples, sampleRateHz, detectorRateHz),
      codec,
      sampleRateHz,
      channels,
    },
  };
}

function sampleReader(content: Buffer, { codec, bytes }: WavFormat): (at: number) => number {
  if (codec === 'float') return (at) => clipped(content.readFloatLE(at) * 32_768);
  if (codec !== 'PCM') {
    const table = decodeTable[codec === 'µ-law' ? 'PCMU' : 'PCMA'];
    return (at) => table[content[at] ?? 0] ?? 0;
  }
  // Eight bits are unsigned; wider ones are signed, and their lowest bits are below any line's noise.
  if (bytes === 1) return (at) => ((content[at] ?? 128) - 128) << 8;
  return (at) => content.readInt16LE(at + bytes - 2);
}

/** NaN is as silent as a number can be. */
function clipped(sample: number): number {
  return Math.max(-32_768, Math.min(32_767, Math.round(sample))) || 0;
}

function unreadable(problem: string): WavResult {
  return { kind: 'unreadable', problem };
}
