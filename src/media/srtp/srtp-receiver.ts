// Authenticates and decrypts what we receive (RFC 3711, sections 3.3 and 3.4).

import { payloadStartOf, uint16, uint32 } from '../rtp/rtp-packet.ts';
import { PacketOrder } from './packet-order.ts';
import {
  cipherOf,
  encryptedFlag,
  rtcpClearBytes,
  rtcpIndexBytes,
  type SrtpCipher,
  sequences,
} from './srtp-cipher.ts';
import { isSameKey, type SrtpKey } from './srtp-keys.ts';

/**
 * Senders whose counters we keep. A call has one; a fork, a transfer and early media add another.
 * Only a sender that knows the key takes a place.
 */
const maxSenders = 8;

/** Why a packet isn't heard. */
export type Rejection = 'malformed' | 'forged' | 'replayed';

/** The receiver for a description's key. An unchanged key keeps its receiver. */
export function receiverFor(
  key: SrtpKey | undefined,
  before: SrtpReceiver | undefined,
): SrtpReceiver | undefined {
  if (key === undefined) return undefined;
  if (before === undefined) return new SrtpReceiver(key);
  return isSameKey(key, before.key) ? before : before.withKey(key);
}

export class SrtpReceiver {
  readonly key: SrtpKey;
  readonly #rtp: Direction;
  readonly #rtcp: Direction;
  /**
   * The receiver of the key before. Until the far end uses the new key, its packets still come with
   * the old one.
   */
  #previous: SrtpReceiver | undefined;

  constructor(key: SrtpKey, senders = new Senders()) {
    this.key = key;
    this.#rtp = { ...cipherOf(key, 'rtp'), senders };
    this.#rtcp = { ...cipherOf(key, 'rtcp'), senders: new Senders() };
  }

  /**
   * Continues with another key. The rollover counters of RTP go on as long as the SSRCs stay the
   * same. The index of RTCP is in each packet, so it needs no counter.
   */
  withKey(key: SrtpKey): SrtpReceiver {
    const next = new SrtpReceiver(key, this.#rtp.senders.underAnotherKey());
    this.#previous = undefined;
    next.#previous = this;
    return next;
  }

  /**
   * Authenticates a packet and decrypts it in place.
   * @returns the RTP packet, which is a part of `packet`
   */
  unprotect(packet: Uint8Array): Uint8Array | Rejection {
    const { tag, senders } = this.#rtp;
    const end = packet.length - tag.bytes;
    const start = payloadStartOf(packet, end);
    if (start < 0) return 'malformed';
    const sequence = uint16(packet, 2);
    const order = senders.find(uint32(packet, 8));
    const index = order.indexOf(sequence);
    if (index === undefined) return 'replayed';
    // Authenticate before anything else, so that a forger learns nothing about the window.
    if (tag.matches(packet, end, rolloverOf(index))) {
      return this.#accept(packet, start, order, index);
    }
    const other = order.otherIndexOf(sequence);
    if (other !== undefined && other !== index && tag.matches(packet, end, rolloverOf(other))) {
      return this.#accept(packet, start, new PacketOrder(), other);
    }
    return this.#previous?.unprotect(packet) ?? 'forged';
  }

  /** Decrypts an authentic packet, unless it's replayed. */
  #accept(
    packet: Uint8Array,
    start: number,
    order: PacketOrder,
    index: number,
  ): Uint8Array | Rejection {
    const { stream, tag, senders } = this.#rtp;
    this.#previous = undefined;
    if (order.isReplayed(index)) return 'replayed';
    const end = packet.length - tag.bytes;
    const ssrc = uint32(packet, 8);
    senders.accept(ssrc, order, index);
    stream.apply(packet, start, end, ssrc, index);
    return packet.subarray(0, end);
  }

  /** Like `unprotect`, for a compound RTCP packet. */
  unprotectRtcp(packet: Uint8Array): Uint8Array | Rejection {
    const { stream, tag, senders } = this.#rtcp;
    const tagAt = packet.length - tag.bytes;
    const end = tagAt - rtcpIndexBytes;
    if (end < rtcpClearBytes) return 'malformed';
    if (!tag.matches(packet, tagAt, undefined)) {
      return this.#previous?.unprotectRtcp(packet) ?? 'forged';
    }
    const ssrc = uint32(packet, 4);
    const flagAndIndex = uint32(packet, end);
    const index = flagAndIndex % encryptedFlag;
    const order = senders.find(ssrc);
    if (order.isReplayed(index)) return 'replayed';
    senders.accept(ssrc, order, index);
    if (flagAndIndex >= encryptedFlag) stream.apply(packet, rtcpClearBytes, end, ssrc, index);
    return packet.subarray(0, end);
  }
}

function rolloverOf(index: number): number {
  return Math.floor(index / sequences);
}

/** The order of the packets of each sender. */
class Senders {
  /** By SSRC. The sender that was heard last is at the end. */
  readonly #orders = new Map<number, PacketOrder>();
  #last = -1;

  find(ssrc: number): PacketOrder {
    return this.#orders.get(ssrc) ?? new PacketOrder();
  }

  accept(ssrc: number, order: PacketOrder, index: number): void {
    order.accept(index);
    if (ssrc === this.#last) return;
    this.#last = ssrc;
    this.#orders.delete(ssrc);
    this.#orders.set(ssrc, order);
    const [oldest] = this.#orders.keys();
    if (this.#orders.size > maxSenders && oldest !== undefined) this.#orders.delete(oldest);
  }

  /** A packet that was sent with the old key isn't a replay under the new one. */
  underAnotherKey(): Senders {
    const copy = new Senders();
    for (const [ssrc, order] of this.#orders) copy.#orders.set(ssrc, order.underAnotherKey());
    return copy;
  }
}

type Direction = SrtpCipher & { readonly senders: Senders };
