// Compares a recording with what its phone sent and heard, sample by sample.

import { crc32 } from 'node:zlib';
import type { PhoneLog } from './marked-phones.ts';
import { frameBytes, type Mark, readMark } from './marks.ts';

const wavHeaderBytes = 58;

export type Audio = { readonly left: Buffer; readonly right: Buffer };

/** @throws Error if the file isn't a WAV file as the page about formats describes it */
export function readRecording(file: Buffer): Audio {
  const isWav =
    file.toString('latin1', 0, 4) === 'RIFF' &&
    file.readUInt16LE(20) === 7 &&
    file.readUInt16LE(22) === 2 &&
    file.readUInt32LE(54) === file.length - wavHeaderBytes;
  if (!isWav) throw new Error('not a WAV file of two µ-law channels');
  const data = file.subarray(wavHeaderBytes);
  const left = Buffer.alloc(data.length / 2);
  const right = Buffer.alloc(data.length / 2);
  for (let at = 0; at < left.length; at += 1) {
    left[at] = data[2 * at] ?? 0;
    right[at] = data[2 * at + 1] ?? 0;
  }
  return { left, right };
}

export type Heard = {
  /** Frames of the recording whose every sample is the phone's. */
  readonly exact: number;
  /** Frames between the first and the last of them that the recording lacks. */
  readonly missing: number;
  /** Frames of another phone, and frames out of order. */
  readonly wrong: number;
  /** How often the place of the phone's frames moved, and by how many frames in the end. */
  readonly slips: number;
  readonly drift: number;
  /** Frames that the phone sent after the last one in the recording. */
  readonly unheard: number;
};

/** Compares the left channel with what the phone sent. */
export function compareHeard(left: Buffer, { speaker, sent }: PhoneLog): Heard {
  const places = marksIn(left);
  const own = places.filter(({ mark }) => mark.speaker === speaker);
  const first = own[0];
  const last = own.at(-1);
  const heard = { exact: own.length, missing: 0, wrong: places.length - own.length, slips: 0 };
  for (const [index, { mark, at }] of own.entries()) {
    const before = own[index - 1];
    if (before === undefined) continue;
    const step = mark.frame - before.mark.frame;
    if (step <= 0) heard.wrong += 1;
    else heard.missing += step - 1;
    if (step !== at - before.at) heard.slips += 1;
  }
  return {
    ...heard,
    drift: offsetOf(last) - offsetOf(first),
    unheard: sent - 1 - (last?.mark.frame ?? -1),
  };
}

type Place = { readonly at: number; readonly mark: Mark };

function marksIn(channel: Buffer): readonly Place[] {
  const places: Place[] = [];
  for (let at = 0; (at + 1) * frameBytes <= channel.length; at += 1) {
    const mark = readMark(channel.subarray(at * frameBytes, (at + 1) * frameBytes));
    if (mark !== undefined) places.push({ at, mark });
  }
  return places;
}

const offsetOf = (place: Place | undefined): number =>
  place === undefined ? 0 : place.at - place.mark.frame;

export type Said = {
  /** Packets of the phone that are in the recording, at their place, sample by sample. */
  readonly exact: number;
  readonly different: number;
  /** Packets that the phone received after the end of the recording. */
  readonly after: number;
  readonly isFound: boolean;
};

/**
 * Compares the right channel with what the phone received. The first mark tells the place of all
 * packets: that of each follows from its RTP timestamp.
 */
export function compareSaid(right: Buffer, { heard, firstMark }: PhoneLog): Said {
  const { timestamps, sums } = heard;
  if (firstMark === undefined) return { exact: 0, different: 0, after: 0, isFound: false };
  const start = placeOf(right, firstMark.frame, firstMark.speaker);
  if (start === undefined) return { exact: 0, different: 0, after: sums.length, isFound: false };
  const first = timestamps[firstMark.at] ?? 0;
  const said = { exact: 0, different: 0, after: 0, isFound: true };
  for (const [at, timestamp] of timestamps.entries()) {
    const place = start + ((timestamp - first) | 0);
    // Before the recording began.
    if (place < 0) continue;
    if (place + frameBytes > right.length) said.after += 1;
    else if (crc32(right.subarray(place, place + frameBytes)) === sums[at]) said.exact += 1;
    else said.different += 1;
  }
  return said;
}

function placeOf(right: Buffer, frame: number, speaker: number): number | undefined {
  for (let place = 0; place + frameBytes <= right.length; place += frameBytes) {
    const mark = readMark(right.subarray(place, place + frameBytes));
    if (mark?.frame === frame && mark.speaker === speaker) return place;
  }
  return undefined;
}
