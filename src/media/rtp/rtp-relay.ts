// What one far end of a bridge sends, on its way to the other: each packet at once, in its order, as a packet of our own. Its
// sequence number and SSRC are those of our sender, so that the far end sees one stream, whichever side speaks; its timestamps
// keep the steps of the source as long as those are sound.

import type { Codec } from '../g711.ts';
import { alawToMulaw, mulawToAlaw } from '../g711.ts';
import type { RemoteMedia } from '../sdp.ts';
import {
  type RtpHeader,
  rtpHeaderBytes,
  sequenceDistance,
  timestampDistance,
} from './rtp-packet.ts';
import type { RtpSender } from './rtp-sender.ts';

/** 80 ms of G.711; no phone sends more in a packet. */
const maxPayloadBytes = 640;
/** A socket whose buffer is full sends a packet later, out of the memory it is in. */
const packetsInTurn = 8;
const frameSamples = 160;
/**
 * So many frames without a packet, and nothing ahead of our clock: the source is on hold, or silent by its own choice, and the far
 * end gets silence of ours.
 */
const longestPauseFrames = 5;
/** In packets: what is more behind than this is not merely late (MAX_MISORDER). */
const furthestBehind = 100;
/** Timestamps that run so far ahead of our clock belong to another stream. */
const furthestAheadSamples = 8_000;

export class RtpRelay {
  readonly #sender: RtpSender;
  readonly #onFirst: () => void;
  readonly #packets: readonly Uint8Array[] = Array.from(
    { length: packetsInTurn },
    () => new Uint8Array(rtpHeaderBytes + maxPayloadBytes),
  );
  #turn = 0;
  #hasRelayed = false;
  #ssrc: number | undefined;
  #sequence = 0;
  /** After one that was far behind. */
  #expected: number | undefined;
  /** Ours less theirs; undefined: to be found by the next packet. */
  #offset: number | undefined;
  #pauseFrames = longestPauseFrames;
  /** Timestamps of the key that is pressed: all its packets have the same (RFC 4733, section 2.5.1.2). */
  #event: { readonly theirs: number; readonly ours: number } | undefined;

  /** `onFirst`: audio has come through. */
  constructor(sender: RtpSender, onFirst: () => void) {
    this.#sender = sender;
    this.#onFirst = onFirst;
  }

  /** Whether our own silence would be one voice too many. */
  get isFlowing(): boolean {
    const { clockTimestamp, nextTimestamp } = this.#sender;
    return this.#pauseFrames < longestPauseFrames || nextTimestamp !== clockTimestamp;
  }

  /** 20 ms have passed. */
  tick(): void {
    this.#pauseFrames += 1;
  }

  /** The packet to be sent, valid until seven more were made; undefined: it came too late, or cannot be used. */
  audio(
    source: Uint8Array,
    header: RtpHeader,
    codec: Codec,
    remote: RemoteMedia,
  ): Uint8Array | undefined {
    const samples = header.payloadEnd - header.payloadStart;
    if (samples <= 0 || samples > maxPayloadBytes || !this.#isNext(header)) return undefined;
    const timestamp = this.#map(header.timestamp);
    const isFirst = !this.#hasRelayed || !this.isFlowing;
    const packet = this.#write(source, header, samples, tableFor(codec, remote.codec));
    this.#sender.relay(packet, {
      payloadType: remote.payloadType,
      marker: header.marker || isFirst,
      timestamp,
      samples,
    });
    // One more than the packet is long: a source with 60 ms packets pauses for that long between two.
    this.#pauseFrames = 1 - Math.ceil(samples / frameSamples);
    if (!this.#hasRelayed) {
      this.#hasRelayed = true;
      this.#onFirst();
    }
    return packet;
  }

  /** A pressed key, passed on as it is; undefined also where the far end declared that it takes none. */
  event(source: Uint8Array, header: RtpHeader, remote: RemoteMedia): Uint8Array | undefined {
    const bytes = header.payloadEnd - header.payloadStart;
    const payloadType = remote.keyPayloadType;
    if (bytes < 4 || bytes > maxPayloadBytes || payloadType === undefined) return undefined;
    if (!this.#isNext(header)) return undefined;
    const isBegin = this.#event?.theirs !== header.timestamp;
    if (this.#event === undefined || isBegin) {
      this.#event = { theirs: header.timestamp, ours: this.#map(header.timestamp) };
    }
    const packet = this.#write(source, header, bytes, undefined);
    // Takes no time of its own: audio may go on beside it.
    const { ours: timestamp } = this.#event;
    this.#sender.relay(packet, { payloadType, marker: isBegin, timestamp, samples: 0 });
    this.#pauseFrames = 0;
    return packet;
  }

  #isNext({ ssrc, sequence }: RtpHeader): boolean {
    const isSame = ssrc === this.#ssrc;
    if (isSame && sequenceDistance(sequence, this.#sequence) <= 0 && !this.#beginsAnew(sequence)) {
      return false;
    }
    if (!isSame) this.#offset = undefined;
    this.#ssrc = ssrc;
    this.#sequence = sequence;
    return true;
  }

  /** Two in a row that are far behind: the source has begun to count anew (RFC 3550, A.1). */
  #beginsAnew(sequence: number): boolean {
    if (sequenceDistance(sequence, this.#sequence) > -furthestBehind) return false;
    const isSecond = sequence === this.#expected;
    this.#expected = (sequence + 1) & 0xffff;
    if (isSecond) this.#offset = undefined;
    return isSecond;
  }

  #map(theirs: number): number {
    const { nextTimestamp, clockTimestamp } = this.#sender;
    const mapped = this.#offset === undefined ? undefined : (theirs + this.#offset) >>> 0;
    const isSound =
      mapped !== undefined &&
      timestampDistance(mapped, nextTimestamp) >= 0 &&
      timestampDistance(mapped, clockTimestamp) <= furthestAheadSamples;
    if (isSound) return mapped;
    this.#offset = timestampDistance(nextTimestamp, theirs);
    return nextTimestamp;
  }

  #write(
    source: Uint8Array,
    { payloadStart }: RtpHeader,
    count: number,
    table: Uint8Array | undefined,
  ): Uint8Array {
    const packet = this.#packets[this.#turn] as Uint8Array;
    this.#turn = (this.#turn + 1) % packetsInTurn;
    for (let index = 0; index < count; index += 1) {
      const byte = source[payloadStart + index] as number;
      packet[rtpHeaderBytes + index] = table === undefined ? byte : (table[byte] as number);
    }
    return packet.subarray(0, rtpHeaderBytes + count);
  }
}

function tableFor(from: Codec, to: Codec): Uint8Array | undefined {
  if (from === to) return undefined;
  return from === 'PCMU' ? mulawToAlaw : alawToMulaw;
}
