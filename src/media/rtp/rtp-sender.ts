// The RTP stream that we send in one call: 20 ms packets in the far end's codec, which contain
// either queued audio or silence. Sequence numbers have no gaps. Timestamps keep following real
// time even if we've dropped, paused or delayed audio in between.

import { mulawToAlaw, silenceByte } from '../g711.ts';
import { tickMs } from '../playout/playout.ts';
import type { SoundPlayer } from '../playout/sound-player.ts';
import type { RemoteMedia } from '../sdp.ts';
import { frameSamples } from './jitter-buffer.ts';
import { rtpHeaderBytes, timestampDistance, writeRtpHeader } from './rtp-packet.ts';

/**
 * We rotate through four packet buffers, so each is reused after 80 ms. One wouldn't be enough: if
 * the socket is congested, it sends a packet later, from the same memory.
 */
const bufferCount = 4;
/**
 * For one second after the answer, and after each stretch of our own audio, we send silence without
 * gaps, because far ends need these packets to latch and to fill their jitter buffers.
 */
const continuousTicks = 1_000 / tickMs;

export type RtpSenderOptions = {
  /**
   * The SSRC, the first sequence number and the first timestamp are random, so attackers can't
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
   * The marker bit for the next packet. It's set for the first packet and after a gap, because
   * that's where a talkspurt starts (RFC 3551, section 4.1).
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
   * Timestamp for the next packet. It's usually our clock's, but never earlier than the end of the
   * audio that we've already sent.
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

  /** Fills the rest of the packet with silence, starting at `end`, and writes its header. */
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
   * Adds a packet to this stream that was relayed or carries a key. If our own audio follows, it
   * starts a new talkspurt.
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

  /** Records that we aren't sending any audio of our own in this tick. */
  skip(): void {
    this.#marker = true;
  }
}

/**
 * Decides how often we send silence while there's no bot, sound or ringback to play. RFC 3551,
 * section 4.1, lets us omit silence, and sending all of it would account for half the cost of a
 * call that we only listen to. We still send a packet now and then, because it keeps NATs and
 * session border controllers open (RFC 6263), and shows any equipment that counts packets that the
 * line is alive.
 */
export class SilencePacing {
  readonly #everyTicks: number;
  #silentTicks = 0;

  /** With `everyTicks` set to 1, we send silence in every tick. */
  constructor(everyTicks: number) {
    this.#everyTicks = everyTicks;
  }

  /**
   * Restarts the second of continuous silence. Call this after sending other packets, or if the far
   * end may have moved.
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
