// Relays packets from one far end of a bridge to the other, in order and without delay. Relayed
// packets carry our sender's SSRC and sequence numbers, so the receiver sees a single stream even
// when the audio comes from different senders. As long as the source's timestamps are plausible,
// ours advance by the same steps.

import type { Codec } from '../g711.ts';
import { alawToMulaw, mulawToAlaw } from '../g711.ts';
import { maxReceivedMs, type RemoteMedia } from '../sdp.ts';
import {
  type RtpHeader,
  rtpHeaderBytes,
  sequenceDistance,
  timestampDistance,
} from './rtp-packet.ts';
import type { RtpSender } from './rtp-sender.ts';

/** The longest packet that our descriptions allow. A sample is one byte. */
const maxPayloadBytes = maxReceivedMs * 8;
/**
 * Relayed packets use these buffers in rotation. We need several because a congested socket sends a
 * packet later, from the same memory.
 */
const bufferCount = 8;
const frameSamples = 160;
/**
 * If no packet arrives for this many frames, and we haven't sent any audio ahead of our clock, we
 * assume that the source is on hold or suppresses silence. From then on we send the receiver our
 * own silence.
 */
const maxPauseFrames = 5;
/** A packet this far behind isn't just late (MAX_MISORDER in RFC 3550). */
const maxPacketsBehind = 100;
/** We don't trust timestamps that are further ahead of our clock than this. */
const maxSamplesAhead = 8_000;

export class RtpRelay {
  readonly #sender: RtpSender;
  readonly #onFirst: () => void;
  readonly #packets: readonly Uint8Array[] = Array.from(
    { length: bufferCount },
    () => new Uint8Array(rtpHeaderBytes + maxPayloadBytes),
  );
  #nextBuffer = 0;
  #hasRelayed = false;
  #ssrc: number | undefined;
  #sequence = 0;
  /**
   * The sequence number that would confirm a restart of the source if the next packet carries it.
   * Undefined until a packet is far behind.
   */
  #expected: number | undefined;
  /**
   * Our timestamps minus the source's. Undefined until the next packet determines the difference.
   */
  #offset: number | undefined;
  #pauseFrames = maxPauseFrames;
  /**
   * The current key's timestamp, both in the source's packets and in ours. All packets for one key
   * have the same timestamp (RFC 4733, section 2.5.1.2).
   */
  #event: { readonly sourceTimestamp: number; readonly sentTimestamp: number } | undefined;

  /** `onFirst` is called when the first audio packet is relayed. */
  constructor(sender: RtpSender, onFirst: () => void) {
    this.#sender = sender;
    this.#onFirst = onFirst;
  }

  /** True while relayed audio is flowing, during which we must not send our own silence. */
  get isFlowing(): boolean {
    const { clockTimestamp, nextTimestamp } = this.#sender;
    return this.#pauseFrames < maxPauseFrames || nextTimestamp !== clockTimestamp;
  }

  /** Advances the clock by 20 ms. */
  tick(): void {
    this.#pauseFrames += 1;
  }

  /**
   * Turns an audio packet into the packet to send. The result is valid until seven more packets
   * have been built.
   * @returns undefined if the packet came too late or is unusable
   */
  audio(
    source: Uint8Array,
    header: RtpHeader,
    codec: Codec,
    remote: RemoteMedia,
  ): Uint8Array | undefined {
    const samples = header.payloadEnd - header.payloadStart;
    if (samples <= 0 || samples > maxPayloadBytes || !this.#isNext(header)) return undefined;
    const timestamp = this.#mapTimestamp(header.timestamp);
    const isFirst = !this.#hasRelayed || !this.isFlowing;
    const packet = this.#write(source, header, samples, tableFor(codec, remote.codec));
    this.#sender.relay(packet, {
      payloadType: remote.payloadType,
      marker: header.marker || isFirst,
      timestamp,
      samples,
    });
    // Count from the end of the packet's audio, because a source that sends 60 ms packets leaves
    // gaps of that length between them.
    this.#pauseFrames = 1 - Math.ceil(samples / frameSamples);
    if (!this.#hasRelayed) {
      this.#hasRelayed = true;
      this.#onFirst();
    }
    return packet;
  }

  /**
   * Turns a key's packet into the packet to send, with an unchanged payload.
   * @returns undefined if the packet came too late or is unusable, or if the far end doesn't accept
   * keys
   */
  event(source: Uint8Array, header: RtpHeader, remote: RemoteMedia): Uint8Array | undefined {
    const bytes = header.payloadEnd - header.payloadStart;
    const payloadType = remote.keyPayloadType;
    if (bytes < 4 || bytes > maxPayloadBytes || payloadType === undefined) return undefined;
    if (!this.#isNext(header)) return undefined;
    const isBegin = this.#event?.sourceTimestamp !== header.timestamp;
    if (this.#event === undefined || isBegin) {
      this.#event = {
        sourceTimestamp: header.timestamp,
        sentTimestamp: this.#mapTimestamp(header.timestamp),
      };
    }
    const packet = this.#write(source, header, bytes, undefined);
    // A key doesn't advance the stream's time, because audio may continue in parallel.
    const { sentTimestamp: timestamp } = this.#event;
    this.#sender.relay(packet, { payloadType, marker: isBegin, timestamp, samples: 0 });
    this.#pauseFrames = 0;
    return packet;
  }

  #isNext({ ssrc, sequence }: RtpHeader): boolean {
    const isSame = ssrc === this.#ssrc;
    if (
      isSame &&
      sequenceDistance(sequence, this.#sequence) <= 0 &&
      !this.#confirmsRestart(sequence)
    ) {
      return false;
    }
    if (!isSame) this.#offset = undefined;
    this.#ssrc = ssrc;
    this.#sequence = sequence;
    return true;
  }

  /**
   * Checks whether the source has restarted its sequence, i.e. two consecutive packets are far
   * behind (RFC 3550, appendix A.1).
   */
  #confirmsRestart(sequence: number): boolean {
    if (sequenceDistance(sequence, this.#sequence) > -maxPacketsBehind) return false;
    const isSecond = sequence === this.#expected;
    this.#expected = (sequence + 1) & 0xffff;
    if (isSecond) this.#offset = undefined;
    return isSecond;
  }

  #mapTimestamp(sourceTimestamp: number): number {
    const { nextTimestamp, clockTimestamp } = this.#sender;
    const mapped = this.#offset === undefined ? undefined : (sourceTimestamp + this.#offset) >>> 0;
    const isPlausible =
      mapped !== undefined &&
      timestampDistance(mapped, nextTimestamp) >= 0 &&
      timestampDistance(mapped, clockTimestamp) <= maxSamplesAhead;
    if (isPlausible) return mapped;
    this.#offset = timestampDistance(nextTimestamp, sourceTimestamp);
    return nextTimestamp;
  }

  #write(
    source: Uint8Array,
    { payloadStart }: RtpHeader,
    count: number,
    table: Uint8Array | undefined,
  ): Uint8Array {
    const packet = this.#packets[this.#nextBuffer] as Uint8Array;
    this.#nextBuffer = (this.#nextBuffer + 1) % bufferCount;
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
