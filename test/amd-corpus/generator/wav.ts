// Writes recordings as WAV files.

/** Makes PCM of one channel. 8-bit samples are unsigned. */
export function wavOf(
  samples: Buffer,
  { rateHz, bits }: { readonly rateHz: number; readonly bits: 8 | 16 },
): Buffer {
  const sampleBytes = bits / 8;
  const head = Buffer.alloc(44);
  head.write('RIFF', 0);
  head.writeUInt32LE(36 + samples.length, 4);
  head.write('WAVEfmt ', 8);
  head.writeUInt32LE(16, 16);
  // PCM, one channel, samples and bytes per second, bytes and bits per sample.
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(rateHz, 24);
  head.writeUInt32LE(rateHz * sampleBytes, 28);
  head.writeUInt16LE(sampleBytes, 32);
  head.writeUInt16LE(bits, 34);
  head.write('data', 36);
  head.writeUInt32LE(samples.length, 40);
  return Buffer.concat([head, samples]);
}
