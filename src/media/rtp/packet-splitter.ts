// Splits audio packets that are longer than the far end accepts (`a=maxptime`, RFC 8866, section
// 6.4). Most far ends declare nothing, or no less than our 20 ms, and get every packet as it is.

import { rtpHeaderBytes, uint16, uint32, writeRtpHeader } from './rtp-packet.ts';

export class PacketSplitter {
  readonly #send: (packet: Uint8Array) => void;
  /** Number of packets that splitting has added. All later sequence numbers grow by it. */
  #added = 0;

  constructor(send: (packet: Uint8Array) => void) {
    this.#send = send;
  }

  /**
   * Sends the packet, whole or in parts.
   *
   * @param packet has no CSRC and no extension. If it isn't split, its sequence number is changed
   *   in place
   * @param maxSamples the longest packet that the far end accepts. Undefined if any length is fine
   */
  send(packet: Uint8Array, maxSamples: number | undefined): void {
    const samples = packet.length - rtpHeaderBytes;
    if (maxSamples === undefined || samples <= maxSamples) {
      if (this.#added !== 0) this.#renumber(packet);
      this.#send(packet);
      return;
    }
    const count = Math.ceil(samples / maxSamples);
    const size = Math.ceil(samples / count);
    for (let index = 0; index < count; index += 1) {
      if (index > 0) this.#added = (this.#added + 1) & 0xffff;
      this.#send(this.#part(packet, index * size, size));
    }
  }

  #renumber(packet: Uint8Array): void {
    const sequence = uint16(packet, 2) + this.#added;
    packet[2] = sequence >>> 8;
    packet[3] = sequence;
  }

  /** Only the first part may begin a talkspurt. */
  #part(packet: Uint8Array, start: number, size: number): Uint8Array {
    const at = rtpHeaderBytes + start;
    const payload = packet.subarray(at, at + size);
    const part = new Uint8Array(rtpHeaderBytes + payload.length);
    const second = packet[1] as number;
    writeRtpHeader(part, {
      payloadType: second & 0x7f,
      marker: start === 0 && second > 0x7f,
      sequence: uint16(packet, 2) + this.#added,
      timestamp: uint32(packet, 4) + start,
      ssrc: uint32(packet, 8),
    });
    part.set(payload, rtpHeaderBytes);
    return part;
  }
}
