// What one call sends: a packet of 20 ms at a time, of what is queued or of silence, in the far end's codec. Sequence numbers have no
// gap, and timestamps tell the time, whatever was queued, cleared, held or late in between.

import { mulawToAlaw, silenceByte } from '../g711.ts';
import { tickMs } from '../playout/playout.ts';
import type { SoundPlayer } from '../playout/sound-player.ts';
import type { RemoteMedia } from '../sdp.ts';
import { frameSamples } from './jitter-buffer.ts';
import { rtpHeaderBytes, timestampDistance, writeRtpHeader } from './rtp-packet.ts';

/** A socket whose buffer is full sends a packet later, out of the memory it is in: that is used again after 80 ms only. */
const packetsInTurn = 4;
/** From the answer on, and after a voice of ours: who latches to the first packets, or fills a jitter buffer, has all of them. */
const continuousTicks = 1_000 / tickMs;

export type RtpSenderOptions = {
  /** Random (RFC 3550 5.1), so that they cannot be guessed. */
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
  /** After the last sample that was sent. */
  #end: number;
  /** The next packet begins a stretch of audio (RFC 3551 4.1): the first, and any after a time in which none were sent. */
  #marker = true;

  constructor({ ssrc, firstSequence, firstTimestamp }: RtpSenderOptions) {
    this.#ssrc = ssrc;
    this.#sequence = firstSequence & 0xffff;
    this.#timestamp = firstTimestamp >>> 0;
    this.#end = this.#timestamp;
  }

  /** By our clock. */
  get clockTimestamp(): number {
    return this.#timestamp;
  }

  /** By our clock, but never before what was sent. */
  get nextTimestamp(): number {
    return timestampDistance(this.#end, this.#timestamp) > 0 ? this.#end : this.#timestamp;
  }

  /** 20 ms have passed. */
  tick(): void {
    this.#timestamp = (this.#timestamp + frameSamples) >>> 0;
  }

  /** The packet of this tick; valid until three more were made. */
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

  /** 20 ms of nothing, in place of whatever is queued. */
  silence(remote: RemoteMedia): Uint8Array {
    return this.#say(this.#nextPacket(), rtpHeaderBytes, remote);
  }

  #nextPacket(): Uint8Array {
    const packet = this.#packets[this.#turn] as Uint8Array;
    this.#turn = (this.#turn + 1) % packetsInTurn;
    return packet;
  }

  /** Silence from `end` on. */
  #say(packet: Uint8Array, end: number, remote: RemoteMedia): Uint8Array {
    packet.fill(silenceByte[remote.codec], end);
    this.#timestamp = this.nextTimestamp;
    const { payloadType } = remote;
    const timestamp = this.#timestamp;
    this.#number(packet, { payloadType, marker: this.#marker, timestamp, samples: frameSamples });
    this.#marker = false;
    return packet;
  }

  /** A packet of the other end of a bridge, or of a key, becomes one of this stream. What we say ourselves later begins anew. */
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

  /** Nothing is sent in this tick: on hold, or because the clock is late. */
  skip(): void {
    this.#marker = true;
  }
}

/**
 * How often silence is sent while our side is silent, without bot, message and ringback. RFC 3551, 4.1, lets a sender leave it out, and
 * half of what a call costs that is only listened to would be packets of nothing. Some go out all the same: they keep what is open in
 * NATs and session border controllers (RFC 6263), and tell those that count packets that the line is alive.
 */
export class SilencePacing {
  readonly #everyTicks: number;
  #silentTicks = 0;

  /** `everyTicks` 1: all of it is sent. */
  constructor(everyTicks: number) {
    this.#everyTicks = everyTicks;
  }

  /** Something else was sent, or another far end listens. */
  restart(): void {
    this.#silentTicks = 0;
  }

  /** Once a tick: whether the packet of this one leaves. */
  isDue(isSilent: boolean): boolean {
    this.#silentTicks = isSilent ? this.#silentTicks + 1 : 0;
    return this.#silentTicks <= continuousTicks || this.#silentTicks % this.#everyTicks === 0;
  }
}
