// The RTP stream that one call sends: packets of 20 ms, of queued audio or of silence, in the far
// end's codec. Sequence numbers have no gap. Timestamps follow the time, whatever was queued,
// cleared, held or late in between.

import { mulawToAlaw, silenceByte } from '../g711.ts';
import { tickMs } from '../playout/playout.ts';
import type { SoundPlayer } from '../playout/sound-player.ts';
import type { RemoteMedia } from '../sdp.ts';
import { frameSamples } from './jitter-buffer.ts';
import { rtpHeaderBytes, timestampDistance, writeRtpHeader } from './rtp-packet.ts';

/**
 * Buffers used in turn. A socket whose buffer is full sends a packet later, from the same memory,
 * so each buffer is reused only after 80 ms.
 */
const packetsInTurn = 4;
/**
 * Silence is sent without gaps for one second after the answer and after our own audio. Far ends
 * that latch to the first packets or fill a jitter buffer then receive all packets.
 */
const continuousTicks = 1_000 / tickMs;

export type RtpSenderOptions = {
  /**
   * Random, like the first sequence number and timestamp (RFC 3550, section 5.1), so that they
   * cannot be guessed.
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
    { length: packetsInTurn },
    () => new Uint8Array(rtpHeaderBytes + frameSamples),
  );
  #turn = 0;
  #sequence: number;
  #timestamp: number;
  /** The timestamp after the last sample that was sent. */
  #end: number;
  /**
   * Whether the next packet begins a stretch of audio (RFC 3551, section 4.1). It does if it is the
   * first packet, or if it follows a time without packets.
   */
  #marker = true;

  constructor({ ssrc, firstSequence, firstTimestamp }: RtpSenderOptions) {
    this.#ssrc = ssrc;
    this.#sequence = firstSequence & 0xffff;
    this.#timestamp = firstTimestamp >>> 0;
    this.#end = this.#timestamp;
  }

  /** The present timestamp of our clock. */
  get clockTimestamp(): number {
    return this.#timestamp;
  }

  /** The timestamp of our clock, but never before what was sent. */
  get nextTimestamp(): number {
    return timestampDistance(this.#end, this.#timestamp) > 0 ? this.#end : this.#timestamp;
  }

  /** Advances the clock by 20 ms. */
  tick(): void {
    this.#timestamp = (this.#timestamp + frameSamples) >>> 0;
  }

  /** Returns the packet of this tick. It is valid until three more packets were made. */
  next(remote: RemoteMedia, player: SoundPlayer): Uint8Array {
    const packet = this.#nextPacket();
    const end = rtpHeaderBytes + player.read(packet, rtpHeaderBytes, frameSamples);
    if (remote.codec === 'PCMA') {
      for (let index = rtpHeaderBytes; index < end; index += 1) {
        packet[index] = mulawToAlaw[packet[index] as number] as number;
      }
    }
    return this.#say(packet, end, remote);
  }

  /** Returns a packet with 20 ms of silence, in place of whatever is queued. */
  silence(remote: RemoteMedia): Uint8Array {
    return this.#say(this.#nextPacket(), rtpHeaderBytes, remote);
  }

  #nextPacket(): Uint8Array {
    const packet = this.#packets[this.#turn] as Uint8Array;
    this.#turn = (this.#turn + 1) % packetsInTurn;
    return packet;
  }

  /** Fills the packet with silence from `end` on and completes it. */
  #say(packet: Uint8Array, end: number, remote: RemoteMedia): Uint8Array {
    packet.fill(silenceByte[remote.codec], end);
    this.#timestamp = this.nextTimestamp;
    const { payloadType } = remote;
    const timestamp = this.#timestamp;
    this.#number(packet, { payloadType, marker: this.#marker, timestamp, samples: frameSamples });
    this.#marker = false;
    return packet;
  }

  /**
   * Makes a packet of the bridge's other end, or of a key, part of this stream. Our own audio
   * begins a new stretch afterwards.
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

  /**
   * Records that nothing is sent in this tick, because the call is on hold or the clock is late.
   */
  skip(): void {
    this.#marker = true;
  }
}

/**
 * Decides how often silence is sent while our side has no bot, message or ringback to send. RFC
 * 3551, section 4.1, permits a sender to omit silence. In a call that is only listened to, sending
 * all silence would be half of the call's cost. Some packets are sent nevertheless: they keep NATs
 * and session border controllers open (RFC 6263), and show a packet counter that the line is alive.
 */
export class SilencePacing {
  readonly #everyTicks: number;
  #silentTicks = 0;

  /** With `everyTicks` 1, all silence is sent. */
  constructor(everyTicks: number) {
    this.#everyTicks = everyTicks;
  }

  /** Restarts the pacing after other packets were sent, or when another far end listens. */
  restart(): void {
    this.#silentTicks = 0;
  }

  /** Returns whether the packet of this tick is to be sent. To be called once a tick. */
  isDue(isSilent: boolean): boolean {
    this.#silentTicks = isSilent ? this.#silentTicks + 1 : 0;
    return this.#silentTicks <= continuousTicks || this.#silentTicks % this.#everyTicks === 0;
  }
}
