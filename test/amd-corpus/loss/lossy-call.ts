// Plays a recording to detection as a call does: in packets of 20 ms, some of which are lost,
// through the jitter buffer.

import { createDetector } from '../../../src/amd/detector.ts';
import type { AmdSettings } from '../../../src/calls/call-types.ts';
import type { AmdEvent } from '../../../src/calls/detection/amd-event.ts';
import { decodeTable, encode } from '../../../src/media/g711.ts';
import {
  createJitterStatistics,
  createPlayoutCounts,
  frameSamples,
} from '../../../src/media/rtp/jitter-buffer.ts';
import { ReceivedAudio } from '../../../src/media/rtp/received-audio.ts';
import { createRtpHeader } from '../../../src/media/rtp/rtp-packet.ts';
import type { Random } from '../../amd/made-up-audio.ts';

/**
 * What detection gets: `arrived`, with lost frames marked as such, as in a call, or `concealed`,
 * i.e. what a bot hears, as if it had arrived.
 */
export type Ear = 'arrived' | 'concealed';

/** Longer than any timer: whatever it hears, detection has stopped by then. */
const longestFrames = 3_500;

/**
 * Decides for each packet whether it's lost. Losses come in bursts of `burst` packets on average
 * (Gilbert's model). If it's 1, each packet is lost independently of the others.
 */
export function losses(lossPercent: number, burst: number, random: Random): readonly boolean[] {
  const share = lossPercent / 100;
  const begins = burst === 1 ? share : share / (burst * (1 - share));
  const goesOn = burst === 1 ? share : 1 - 1 / burst;
  let isLost = false;
  return Array.from({ length: longestFrames }, () => {
    isLost = random() < (isLost ? goesOn : begins);
    return isLost;
  });
}

/** Returns the events of a call that loses these packets of a recording. */
export function listenThroughLosses(
  samples: Int16Array,
  lost: readonly boolean[],
  ear: Ear,
  settings: AmdSettings,
): readonly AmdEvent[] {
  const audio = new ReceivedAudio(createJitterStatistics(), createPlayoutCounts());
  const coded = encode('PCMU', samples);
  const silence = new Uint8Array(frameSamples).fill(0xff);
  const header = { ...createRtpHeader(), payloadEnd: frameSamples };
  const detector = createDetector(settings);
  const [heard, arrived] = [new Int16Array(frameSamples), new Int16Array(frameSamples)];
  const events: AmdEvent[] = [];
  for (let index = 0; index < longestFrames && !detector.done; index += 1) {
    header.sequence = index;
    header.timestamp = index * frameSamples;
    const payload = coded.subarray(header.timestamp, header.timestamp + frameSamples);
    const packet = payload.length === frameSamples ? payload : silence;
    if (lost[index] !== true) audio.put(packet, header, decodeTable.PCMU);
    const isReceived = audio.take(heard, arrived);
    const isMadeUp = ear === 'concealed' && heard.some((sample) => sample !== 0);
    const frame = isMadeUp ? heard : arrived;
    events.push(...detector.push(frame, !isReceived && !isMadeUp));
  }
  events.push(...detector.stop('recording-ended'));
  return events;
}
