// The RTP stream that one call sends. It consists of 20 ms packets in the far end's codec, with
// either queued audio or silence. Sequence numbers have no gaps. Timestamps follow real time even
// if audio in between was cleared, held or late.

import { mulawToAlaw, silenceByte } from '../g711.ts';
import { tickMs } from '../playout/playout.ts';
import type { SoundPlayer } from '../playout/sound-player.ts';
import type { RemoteMedia } from '../sdp.ts';
import { frameSamples } from './jitter-buffer.ts';
import { rtpHeaderBytes, timestampDistance, writeRtpHeader } from './rtp-packet.ts';

/**
 * Packet buffers used in rotation, so each is reused after 80 ms. We need several because a
 * congested socket sends a packet later, from the same memory.
 */
const bufferCount = 4;
/**
 * For one second after the answer, and again after our own audio, we send silence without gaps. Far
 * ends need these packets to latch and to fill their jitter buffer.
 */
const continuousTicks = 1_000 / tickMs;

export type RtpSenderOptions = {
  /**
   * This, the first sequence number and the first timestamp are random, so that attackers can't
   * guess them (RFC 3550, section 5.1).
   */
  readonly ssrc: number;
  readonly firstSequence: number;
  readonly firstTimestamp: number;
};

export type RelayedFields = {
  readonly payloadType: number;
  readonly marker: boolean;
  readonly timestamp: number;
  readonly samples: number;
};

export class RtpSender {
  readonly #ssrc: number;
  readonly #packets: readonly Uint8Array[] = Array.from(
    { length: bufferCount },
    () => new Uint8Array(rtpHeaderBytes + frameSamples),
  );
  #nextBuffer = 0;
  #sequence: number;
  #timestamp: number;
  /** The timestamp that follows the last sample we sent. */
  #end: number;
  /**
   * Whether the next packet begins a talkspurt (RFC 3551, section 4.1). It does if it's the first
   * packet or follows a gap.
   */
  #marker = true;

  constructor({ ssrc, firstSequence, firstTimestamp }: RtpSenderOptions) {
    this.#ssrc = ssrc;
    this.#sequence = firstSequence & 0xffff;
    this.#timestamp = firstTimestamp >>> 0;
    this.#end = this.#timestamp;
  }

  get clockTimestamp(): number {
    return this.#timestamp;
  }

  /**
   * Timestamp for the next packet: our clock's, or the end of the audio already sent if that's
   * later.
   */
  get nextTimestamp(): number {
    return timestampDistance(this.#end, this.#timestamp) > 0 ? this.#end : this.#timestamp;
  }

  /** Advances the clock by 20 ms. */
  tick(): void {
    this.#timestamp = (this.#timestamp + frameSamples) >>> 0;
  }

  /** Returns this tick's packet, which is valid until three more packets have been built. */
  next(remote: RemoteMedia, player: SoundPlayer): Uint8Array {
    const packet = this.#nextPacket();
    const end = rtpHeaderBytes + player.read(packet, rtpHeaderBytes, frameSamples);
    if (remote.codec === 'PCMA') {
      for (let index = rtpHeaderBytes; index < end; index += 1) {
        packet[index] = mulawToAlaw[packet[index] as number] as number;
      }
    }
    return this.#complete(packet, end, remote);
  }

  /** Returns a packet with 20 ms of silence. Queued audio stays queued. */
  silence(remote: RemoteMedia): Uint8Array {
    return this.#complete(this.#nextPacket(), rtpHeaderBytes, remote);
  }

  #nextPacket(): Uint8Array {
    const packet = this.#packets[this.#nextBuffer] as Uint8Array;
    this.#nextBuffer = (this.#nextBuffer + 1) % bufferCount;
    return packet;
  }

  /** Fills the packet with silence from `end` on, and writes its header. */
  #complete(packet: Uint8Array, end: number, remote: RemoteMedia): Uint8Array {
    packet.fill(silenceByte[remote.codec], end);
    this.#timestamp = this.nextTimestamp;
    const { payloadType } = remote;
    const timestamp = this.#timestamp;
    this.#writeHeader(packet, {
      payloadType,
      marker: this.#marker,
      timestamp,
      samples: frameSamples,
    });
    this.#marker = false;
    return packet;
  }

  /**
   * Adds a packet to this stream that was relayed or carries a key. Our own audio begins a new
   * talkspurt after it.
   */
  relay(packet: Uint8Array, fields: RelayedFields): void {
    this.#writeHeader(packet, fields);
    this.#marker = true;
  }

  #writeHeader(
    packet: Uint8Array,
    { payloadType, marker, timestamp, samples }: RelayedFields,
  ): void {
    const sequence = this.#sequence;
    writeRtpHeader(packet, { payloadType, marker, sequence, timestamp, ssrc: this.#ssrc });
    this.#sequence = (sequence + 1) & 0xffff;
    const end = (timestamp + samples) >>> 0;
    if (timestampDistance(end, this.#end) > 0) this.#end = end;
  }

  /** Records that we send no audio of our own in this tick. */
  skip(): void {
    this.#marker = true;
  }
}

/**
 * Decides how often we send silence while we have no bot, sound or ringback to play. RFC 3551,
 * section 4.1, permits omitting silence, and sending all of it would account for half the cost of a
 * call that we only listen to. Still, we send some packets. They keep NATs and session border
 * controllers open (RFC 6263), and tell anything that counts packets that the line is alive.
 */
export class SilencePacing {
  readonly #everyTicks: number;
  #silentTicks = 0;

  /** If `everyTicks` is 1, we send all silence. */
  constructor(everyTicks: number) {
    this.#everyTicks = everyTicks;
  }

  /**
   * Restarts the second of continuous silence. Call this when other packets were sent, or when the
   * far end may have moved.
   */
  restart(): void {
    this.#silentTicks = 0;
  }

  /** Decides whether to send a packet in this tick. Call it exactly once per tick. */
  isDue(isSilent: boolean): boolean {
    this.#silentTicks = isSilent ? this.#silentTicks + 1 : 0;
    return this.#silentTicks <= continuousTicks || this.#silentTicks % this.#everyTicks === 0;
  }
}
