// What one call sends: a packet every 20 ms, of what is queued or of silence, in the far end's codec. Sequence numbers have no
// gap, and timestamps tell the time, whatever was queued, cleared, held or late in between.

import { mulawToAlaw, silenceByte } from './g711.ts';
import { frameSamples } from './jitter-buffer.ts';
import { rtpHeaderBytes, writeRtpHeader } from './rtp-packet.ts';
import type { RemoteMedia } from './sdp.ts';
import type { SoundPlayer } from './sound-player.ts';

/** A socket whose buffer is full sends a packet later, out of the memory it is in: that is used again after 80 ms only. */
const packetsInTurn = 4;

export type RtpSenderOptions = {
  /** Random (RFC 3550 5.1), so that nobody can guess them. */
  readonly ssrc: number;
  readonly firstSequence: number;
  readonly firstTimestamp: number;
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
  /** The next packet begins a stretch of audio (RFC 3551 4.1): the first, and any after a time in which none were sent. */
  #marker = true;

  constructor({ ssrc, firstSequence, firstTimestamp }: RtpSenderOptions) {
    this.#ssrc = ssrc;
    this.#sequence = firstSequence & 0xffff;
    this.#timestamp = firstTimestamp >>> 0;
  }

  /** 20 ms have passed. */
  tick(): void {
    this.#timestamp = (this.#timestamp + frameSamples) >>> 0;
  }

  /** The packet of this tick; valid until three more were made. */
  next(remote: RemoteMedia, player: SoundPlayer): Uint8Array {
    const packet = this.#packets[this.#turn] as Uint8Array;
    this.#turn = (this.#turn + 1) % packetsInTurn;
    const count = player.read(packet, rtpHeaderBytes, frameSamples);
    const end = rtpHeaderBytes + count;
    if (remote.codec === 'PCMA') {
      for (let index = rtpHeaderBytes; index < end; index += 1) {
        packet[index] = mulawToAlaw[packet[index] as number] as number;
      }
    }
    packet.fill(silenceByte[remote.codec], end);
    writeRtpHeader(packet, {
      payloadType: remote.payloadType,
      marker: this.#marker,
      sequence: this.#sequence,
      timestamp: this.#timestamp,
      ssrc: this.#ssrc,
    });
    this.#marker = false;
    this.#sequence = (this.#sequence + 1) & 0xffff;
    return packet;
  }

  /** Nothing is sent in this tick: on hold, or because the clock is late. */
  skip(): void {
    this.#marker = true;
  }
}
