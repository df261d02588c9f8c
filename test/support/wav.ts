// Makes WAV files of every kind for the tests.

export type WavParts = {
  /** The samples of each channel. */
  readonly samples?: readonly Int16Array[];
  /** The bytes of the data chunk. Default: made from `samples`. */
  readonly data?: Buffer;
  readonly code?: number;
  readonly bits?: number;
  readonly rate?: number;
  readonly channels?: number;
  readonly extensible?: boolean;
  readonly chunks?: readonly { readonly id: string; readonly content: Buffer }[];
  /** The length that the data chunk claims. Default: its real length. */
  readonly dataLength?: number;
};

export function makeWav(parts: WavParts): Buffer {
  const { code = 1, bits = 16, rate = 8_000, extensible = false } = parts;
  const channels = parts.channels ?? parts.samples?.length ?? 1;
  const bytes = Math.ceil(bits / 8);
  const data = parts.data ?? interleaved(parts.samples ?? [], bits);
  const format = Buffer.alloc(extensible ? 40 : 16);
  format.writeUInt16LE(extensible ? 0xfffe : code, 0);
  format.writeUInt16LE(channels, 2);
  format.writeUInt32LE(rate, 4);
  format.writeUInt32LE((rate * channels * bytes) >>> 0, 8);
  format.writeUInt16LE(channels * bytes, 12);
  format.writeUInt16LE(bits, 14);
  if (extensible) {
    format.writeUInt16LE(22, 16);
    format.writeUInt16LE(code, 24);
    format.write('000000001000800000aa00389b71', 26, 'hex');
  }
  const chunks = [
    { id: 'fmt ', content: format },
    ...(parts.chunks ?? []),
    { id: 'data', content: data, length: parts.dataLength },
  ];
  const body = Buffer.concat(chunks.map((chunk) => written(chunk)));
  const riff = Buffer.from('RIFF\0\0\0\0WAVE');
  riff.writeUInt32LE(body.length + 4, 4);
  return Buffer.concat([riff, body]);
}

function written(chunk: { id: string; content: Buffer; length?: number | undefined }): Buffer {
  const head = Buffer.from(`${chunk.id}\0\0\0\0`);
  head.writeUInt32LE(chunk.length ?? chunk.content.length, 4);
  return Buffer.concat([head, chunk.content, Buffer.alloc(chunk.content.length % 2)]);
}

function interleaved(channels: readonly Int16Array[], bits: number): Buffer {
  const bytes = bits / 8;
  const count = channels[0]?.length ?? 0;
  const data = Buffer.alloc(count * channels.length * bytes);
  for (let index = 0; index < count; index += 1) {
    for (const [channel, samples] of channels.entries()) {
      const at = (index * channels.length + channel) * bytes;
      const sample = samples[index] ?? 0;
      if (bits === 8) data[at] = (sample >> 8) + 128;
      else data.writeInt16LE(sample, at + bytes - 2);
    }
  }
  return data;
}

export function sine(hz: number, rate: number, ms: number): Int16Array {
  return Int16Array.from({ length: (rate * ms) / 1_000 }, (_, index) =>
    Math.round(12_000 * Math.sin((2 * Math.PI * hz * index) / rate)),
  );
}

/** Returns a generator of numbers from 0 up to 1. A seed gives the same numbers everywhere. */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
