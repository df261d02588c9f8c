// Measures what it costs to put received audio back on a steady clock, and to conceal a loss.

import { decodeTable, encode } from '../../../src/media/g711.ts';
import {
  createJitterStatistics,
  createPlayoutCounts,
  frameSamples,
} from '../../../src/media/rtp/jitter-buffer.ts';
import { ReceivedAudio } from '../../../src/media/rtp/received-audio.ts';
import { createRtpHeader } from '../../../src/media/rtp/rtp-packet.ts';
import { threadCpuMs } from './process-usage.ts';

const framesPerRun = 50_000;
/** Every fourth packet is lost, so that each loss is concealed and merged on its own. */
const lossInterval = 4;

/** The CPU time of a frame that arrived, and of a lost frame with its merge, in microseconds. */
export function receivedAudioUs(recording: Int16Array): { whole: number; lost: number } {
  const coded = encode('PCMU', recording);
  const whole = perFrameUs(coded, Infinity);
  return { whole, lost: (perFrameUs(coded, lossInterval) - whole) * lossInterval };
}

function perFrameUs(coded: Uint8Array, interval: number): number {
  const audio = new ReceivedAudio(createJitterStatistics(), createPlayoutCounts());
  const header = createRtpHeader();
  const frames = Math.floor(coded.length / frameSamples);
  const [heard, arrived] = [new Int16Array(frameSamples), new Int16Array(frameSamples)];
  const startMs = threadCpuMs();
  for (let index = 1; index <= framesPerRun; index += 1) {
    header.sequence = index & 0xffff;
    header.timestamp = (index * frameSamples) >>> 0;
    header.payloadStart = (index % frames) * frameSamples;
    header.payloadEnd = header.payloadStart + frameSamples;
    if (index % interval !== 0) audio.put(coded, header, decodeTable.PCMU);
    audio.take(heard, arrived);
  }
  return ((threadCpuMs() - startMs) * 1_000) / framesPerRun;
}
