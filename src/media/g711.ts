// Converts between G.711 (ITU-T) bytes, i.e. A-law or µ-law, and 16-bit linear samples.

export type Codec = 'PCMU' | 'PCMA';

/** The byte that encodes silence. It decodes to zero in µ-law, and to almost zero in A-law. */
export const silenceByte: Readonly<Record<Codec, number>> = { PCMU: 0xff, PCMA: 0xd5 };

const mulawBias = 0x84;
const mulawClip = 32_635;

function decodeMulawByte(byte: number): number {
  const inverted = ~byte & 0xff;
  const exponent = (inverted >> 4) & 0x07;
  const magnitude = ((((inverted & 0x0f) << 3) + mulawBias) << exponent) - mulawBias;
  return (inverted & 0x80) === 0 ? magnitude : -magnitude;
}

function decodeAlawByte(byte: number): number {
  const toggled = byte ^ 0x55;
  const exponent = (toggled >> 4) & 0x07;
  const mantissa = (toggled & 0x0f) << 4;
  const magnitude = exponent === 0 ? mantissa + 8 : (mantissa + 0x108) << (exponent - 1);
  // A-law's sign bit is set for positive samples.
  return (toggled & 0x80) === 0 ? -magnitude : magnitude;
}

/** The linear sample for each of the 256 code words. */
export const decodeTable: Readonly<Record<Codec, Int16Array>> = {
  PCMU: Int16Array.from({ length: 256 }, (_, byte) => decodeMulawByte(byte)),
  PCMA: Int16Array.from({ length: 256 }, (_, byte) => decodeAlawByte(byte)),
};

export function encodeMulaw(sample: number): number {
  const sign = sample < 0 ? 0x80 : 0;
  const magnitude = Math.min(Math.abs(sample), mulawClip) + mulawBias;
  // The segment is determined by the position of the highest bit (7 to 14).
  const exponent = 24 - Math.clz32(magnitude);
  const mantissa = (magnitude >> (exponent + 3)) & 0x0f;
  return ~(sign | (exponent << 4) | mantissa) & 0xff;
}

export function encodeAlaw(sample: number): number {
  const sign = sample < 0 ? 0 : 0x80;
  // Negative samples use one's complement, as in the reference code, so -1 and 0 fall into
  // neighbouring steps.
  const magnitude = Math.min(sample < 0 ? -sample - 1 : sample, 32_767);
  const exponent = magnitude < 0x100 ? 0 : 24 - Math.clz32(magnitude);
  const mantissa = exponent === 0 ? magnitude >> 4 : (magnitude >> (exponent + 3)) & 0x0f;
  return (sign | (exponent << 4) | mantissa) ^ 0x55;
}

/**
 * The A-law code word for each µ-law code word. With this table we convert bots' audio for far ends
 * that use A-law.
 */
export const mulawToAlaw: Uint8Array = Uint8Array.from({ length: 256 }, (_, byte) =>
  encodeAlaw(decodeMulawByte(byte)),
);

/** The µ-law code word for each A-law code word. Bridges need both directions. */
export const alawToMulaw: Uint8Array = Uint8Array.from({ length: 256 }, (_, byte) =>
  encodeMulaw(decodeAlawByte(byte)),
);

const linearToMulaw: Uint8Array = Uint8Array.from({ length: 65_536 }, (_, index) =>
  encodeMulaw((index << 16) >> 16),
);

/**
 * Encodes a frame with a table, because calling `encodeMulaw` for each sample would be ten times as
 * expensive.
 */
export function encodeMulawFrame(samples: Int16Array, bytes: Uint8Array): void {
  for (let index = 0; index < samples.length; index += 1) {
    bytes[index] = linearToMulaw[(samples[index] as number) & 0xffff] as number;
  }
}

/** Returns the mean power of coded audio (1: full scale). */
export function powerOf(bytes: Uint8Array, codec: Codec): number {
  const decoded = decodeTable[codec];
  let energy = 0;
  for (let index = 0; index < bytes.length; index += 1) {
    energy += (decoded[bytes[index] as number] as number) ** 2;
  }
  return energy / Math.max(1, bytes.length) / 32_768 ** 2;
}

export function encode(codec: Codec, samples: Int16Array): Uint8Array {
  const encodeSample = codec === 'PCMU' ? encodeMulaw : encodeAlaw;
  const bytes = new Uint8Array(samples.length);
  for (let index = 0; index < samples.length; index += 1) {
    bytes[index] = encodeSample(samples[index] ?? 0);
  }
  return bytes;
}

/** Samples below this level, -54 dB of full scale, are silence to a listener. */
const audible = 64;

/** Returns true if every µ-law sample is too quiet to be heard. */
export function isSilentMulaw(audio: Uint8Array, start: number, count: number): boolean {
  for (let index = start; index < start + count; index += 1) {
    if (Math.abs(decodeTable.PCMU[audio[index] as number] as number) >= audible) return false;
  }
  return true;
}
