// The RTP stream that one call sends: 20 ms packets of queued audio or silence, in the far end's
// codec. Sequence numbers have no gaps. Timestamps follow real time, no matter what was queued,
// cleared, held or late in between.

import { mulawToAlaw, silenceByte } from '../g711.ts';
import { tickMs } from '../playout/playout.ts';
import type { SoundPlayer } from '../playout/sound-player.ts';
import type { RemoteMedia } from '../sdp.ts';
import { frameSamples } from './jitter-buffer.ts';
import { rtpHeaderBytes, timestampDistance, writeRtpHeader } from './rtp-packet.ts';

/**
 * Number of buffers used in rotation, so that each is reused after 80 ms. A socket whose buffer is
 * full sends a packet later, from the same memory.
 */
const bufferCount = 4;
/**
 * For one second after the answer and after our own audio, silence is sent without gaps. Far ends
 * use these packets to latch and to fill their jitter buffer.
 */
const continuousTicks = 1_000 / tickMs;

export type RtpSenderOptions = {
  /**
   * Random, like the first sequence number and timestamp, so that attackers cannot guess them (RFC
   * 3550, section 5.1).
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
  /** The timestamp after the last sample that was sent. */
  #end: number;
  /**
   * Whether the next packet begins a talkspurt (RFC 3551, section 4.1), because it is the first
   * packet or follows a gap.
   */
  #marker = true;

  constructor({ ssrc, firstSequence, firstTimestamp }: RtpSenderOptions) {
    this.#ssrc = ssrc;
    this.#sequence = firstSequence & 0xffff;
    this.#timestamp = firstTimestamp >>> 0;
    this.#end = this.#timestamp;
  }

  /** The current timestamp of our clock. */
  get clockTimestamp(): number {
    return this.#timestamp;
  }

  /**
   * Timestamp for the next packet: our clock, or the end of the audio already sent if that is
   * later.
   */
  get nextTimestamp(): number {
    return timestampDistance(this.#end, this.#timestamp) > 0 ? this.#end : this.#timestamp;
  }

  /** Advances the clock by 20 ms. */
  tick(): void {
    this.#timestamp = (this.#timestamp + frameSamples) >>> 0;
  }

  /** Returns this tick's packet. It is valid until three more packets were built. */
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

  /** Returns a packet with 20 ms of silence. Does not consume queued audio. */
  silence(remote: RemoteMedia): Uint8Array {
    return this.#complete(this.#nextPacket(), rtpHeaderBytes, remote);
  }

  #nextPacket(): Uint8Array {
    const packet = this.#packets[this.#nextBuffer] as Uint8Array;
    this.#nextBuffer = (this.#nextBuffer + 1) % bufferCount;
    return packet;
  }

  /** Fills the packet with silence from `end` on and completes it. */
  #complete(packet: Uint8Array, end: number, remote: RemoteMedia): Uint8Array {
    packet.fill(silenceByte[remote.codec], end);
    this.#timestamp = this.nextTimestamp;
    const { payloadType } = remote;
    const timestamp = this.#timestamp;
    this.#number(packet, { payloadType, marker: this.#marker, timestamp, samples: frameSamples });
    this.#marker = false;
    return packet;
  }

  /**
   * Makes a relayed packet or a key's packet part of this stream. Our own audio begins a new
   * talkspurt afterwards.
   */
  relay(packet: Uint8Array, fields: RelayedFields): void {
    this.#number(packet, fields);
    this.#marker = true;
  }

  #number(packet: Uint8Array, { payloadType, marker, timestamp, samples }: RelayedFields): void {
    const sequence = this.#sequence;
    writeRtpHeader(packet, { payloadType, marker, sequence, timestamp, ssrc: this.#ssrc });
    this.#sequence = (sequence + 1) & 0xffff;
    const end = (timestamp + samples) >>> 0;
    if (timestampDistance(end, this.#end) > 0) this.#end = end;
  }

  /** Records that none of our own audio is sent in this tick. */
  skip(): void {
    this.#marker = true;
  }
}

/**
 * Decides how often we send silence while we have no bot, sound or ringback to play. RFC 3551,
 * section 4.1, permits omitting silence, and sending it all would be half the cost of a call that
 * we only listen to. We still send some packets. They keep NATs and session border controllers open
 * (RFC 6263), and show anyone who counts packets that the line is alive.
 */
export class SilencePacing {
  readonly #everyTicks: number;
  #silentTicks = 0;

  /** If `everyTicks` is 1, all silence is sent. */
  constructor(everyTicks: number) {
    this.#everyTicks = everyTicks;
  }

  /**
   * Restarts the second of continuous silence, because other packets were sent or the far end may
   * have moved.
   */
  restart(): void {
    this.#silentTicks = 0;
  }

  /** Decides whether to send a packet in this tick. Call it once per tick. */
  isDue(isSilent: boolean): boolean {
    this.#silentTicks = isSilent ? this.#silentTicks + 1 : 0;
    return this.#silentTicks <= continuousTicks || this.#silentTicks % this.#everyTicks === 0;
  }
}
