// Encrypts and authenticates what we send (RFC 3711, sections 3.3 and 3.4).

import { rtpHeaderBytes, uint16, uint32 } from '../rtp/rtp-packet.ts';
import { KeyStream } from './key-stream.ts';
import { PacketTag } from './packet-tag.ts';
import { isSameKey, type SrtpKey, sessionKeys, tagBytes } from './srtp-keys.ts';
import { rtcpClearBytes, rtcpIndexBytes, rtcpTagBytes } from './srtp-receiver.ts';

const sequences = 0x1_0000;
const encryptedFlag = 0x8000_0000;

/**
 * The sender for a description's key. An unchanged key keeps its sender, and another key continues
 * with the rollover counter.
 */
export function senderFor(
  key: SrtpKey | undefined,
  before: SrtpSender | undefined,
): SrtpSender | undefined {
  if (key === undefined) return undefined;
  if (before === undefined) return new SrtpSender(key);
  return isSameKey(key, before.key) ? before : before.withKey(key);
}

export class SrtpSender {
  readonly key: SrtpKey;
  readonly #rtp: { readonly stream: KeyStream; readonly tag: PacketTag };
  readonly #rtcp: { readonly stream: KeyStream; readonly tag: PacketTag };
  #rtcpIndex = 0;
  readonly #rollover: RolloverCounter;

  /**
   * @param rollover counts on over a new key, because the far end keeps its counter as long as the
   *   SSRC stays the same
   */
  constructor(key: SrtpKey, rollover = new RolloverCounter()) {
    this.key = key;
    const rtp = sessionKeys(key, 'rtp');
    const rtcp = sessionKeys(key, 'rtcp');
    this.#rtp = {
      stream: new KeyStream(rtp),
      tag: new PacketTag(rtp.authentication, tagBytes[key.suite]),
    };
    this.#rtcp = {
      stream: new KeyStream(rtcp),
      tag: new PacketTag(rtcp.authentication, rtcpTagBytes),
    };
    this.#rollover = rollover;
  }

  /** Continues the same RTP stream with another key. */
  withKey(key: SrtpKey): SrtpSender {
    return new SrtpSender(key, this.#rollover);
  }

  /** @returns a new packet: `packet`, which has no CSRC and no extension, encrypted, and its tag */
  protect(packet: Uint8Array): Uint8Array {
    const { stream, tag } = this.#rtp;
    const end = packet.length;
    const out = new Uint8Array(end + tag.bytes);
    out.set(packet);
    const sequence = uint16(packet, 2);
    const rollover = this.#rollover.next(sequence);
    stream.apply(out, rtpHeaderBytes, end, uint32(packet, 8), rollover * sequences + sequence);
    tag.write(out, end, rollover);
    return out;
  }

  protectRtcp(packet: Uint8Array): Uint8Array {
    const { stream, tag } = this.#rtcp;
    const end = packet.length;
    const out = new Uint8Array(end + rtcpIndexBytes + tag.bytes);
    out.set(packet);
    const index = this.#rtcpIndex;
    this.#rtcpIndex = (index + 1) % encryptedFlag;
    stream.apply(out, rtcpClearBytes, end, uint32(packet, 4), index);
    new DataView(out.buffer).setUint32(end, encryptedFlag + index);
    tag.write(out, end + rtcpIndexBytes, undefined);
    return out;
  }
}

/** Counts how often the sequence number of our stream has wrapped. */
export class RolloverCounter {
  #last = -1;
  #rollover = 0;

  next(sequence: number): number {
    if (sequence < this.#last) this.#rollover += 1;
    this.#last = sequence;
    return this.#rollover;
  }
}
