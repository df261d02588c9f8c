// The header of a recording's WAV file: two channels of µ-law at 8 kHz. A format other than PCM
// needs the longer `fmt ` chunk and a `fact` chunk with the number of samples.

import { channelCount, sampleRateHz } from '../recording-messages.ts';

export const wavHeaderBytes = 58;
const mulawFormat = 7;
/** A longer recording's header claims as much as fits. Players then read to the file's end. */
const maxUint32 = 0xffff_ffff;

/** `samples`: per channel. */
export function wavHeader(samples: number): Buffer {
  const dataBytes = samples * channelCount;
  const header = Buffer.alloc(wavHeaderBytes);
  header.write('RIFF', 0, 'latin1');
  header.writeUInt32LE(Math.min(maxUint32, wavHeaderBytes - 8 + dataBytes), 4);
  header.write('WAVEfmt ', 8, 'latin1');
  header.writeUInt32LE(18, 16);
  header.writeUInt16LE(mulawFormat, 20);
  header.writeUInt16LE(channelCount, 22);
  header.writeUInt32LE(sampleRateHz, 24);
  header.writeUInt32LE(sampleRateHz * channelCount, 28);
  header.writeUInt16LE(channelCount, 32);
  header.writeUInt16LE(8, 34);
  header.writeUInt16LE(0, 36);
  header.write('fact', 38, 'latin1');
  header.writeUInt32LE(4, 42);
  header.writeUInt32LE(Math.min(maxUint32, samples), 46);
  header.write('data', 50, 'latin1');
  header.writeUInt32LE(Math.min(maxUint32, dataBytes), 54);
  return header;
}
