// Encrypts and authenticates what we send (RFC 3711, sections 3.3 and 3.4).

import { rtpHeaderBytes, uint16, uint32 } from '../rtp/rtp-packet.ts';
import {
  cipherOf,
  encryptedFlag,
  rtcpClearBytes,
  rtcpIndexBytes,
  type SrtpCipher,
  sequences,
} from './srtp-cipher.ts';
import { isSameKey, type SrtpKey, tagBytes } from './srtp-keys.ts';

/**
 * The sender for a description's key. An unchanged key keeps its sender. `counters` belong to the
 * session. They go on over another key, and over a time without encryption, because an index that
 * is used twice with the same key reveals both packets (RFC 3711, section 9.1).
 */
export function senderFor(
  key: SrtpKey | undefined,
  before: SrtpSender | undefined,
  counters: SrtpCounters,
): SrtpSender | undefined {
  if (key === undefined) return undefined;
  if (before === undefined) return new SrtpSender(key, counters);
  return isSameKey(key, before.key) ? before : before.withKey(key);
}

/** As in `RtpRelay`: a congested socket sends a packet later, from the same memory. */
const bufferCount = 8;
/** A packet of 20 ms with its tag. Longer packets get memory of their own. */
const bufferBytes = rtpHeaderBytes + 160 + tagBytes.AES_CM_128_HMAC_SHA1_80;

export class SrtpSender {
  readonly key: SrtpKey;
  readonly #rtp: SrtpCipher;
  readonly #rtcp: SrtpCipher;
  readonly #counters: SrtpCounters;
  readonly #buffers: readonly Uint8Array[] = Array.from(
    { length: bufferCount },
    () => new Uint8Array(bufferBytes),
  );
  #nextBuffer = 0;

  /**
   * @param counters go on over a new key, because the far end keeps its rollover counter as long as
   *   the SSRC stays the same, and because a re-key must not reset the index of RTCP (section 3.4)
   */
  constructor(key: SrtpKey, counters = new SrtpCounters()) {
    this.key = key;
    this.#rtp = cipherOf(key, 'rtp');
    this.#rtcp = cipherOf(key, 'rtcp');
    this.#counters = counters;
  }

  /** Continues the same RTP stream with another key. */
  withKey(key: SrtpKey): SrtpSender {
    return new SrtpSender(key, this.#counters);
  }

  /**
   * @param packet has no CSRC and no extension
   * @returns the packet, encrypted, and its tag. It's valid until seven more packets have been
   *   protected
   */
  protect(packet: Uint8Array): Uint8Array {
    const { stream, tag } = this.#rtp;
    const end = packet.length;
    const out = this.#memoryOf(end + tag.bytes);
    out.set(packet);
    const sequence = uint16(packet, 2);
    const rollover = this.#counters.rolloverOf(sequence);
    stream.apply(out, rtpHeaderBytes, end, uint32(packet, 8), rollover * sequences + sequence);
    tag.write(out, end, rollover);
    return out;
  }

  #memoryOf(bytes: number): Uint8Array {
    if (bytes > bufferBytes) return new Uint8Array(bytes);
    const buffer = this.#buffers[this.#nextBuffer] as Uint8Array;
    this.#nextBuffer = (this.#nextBuffer + 1) % bufferCount;
    return bytes === bufferBytes ? buffer : buffer.subarray(0, bytes);
  }

  protectRtcp(packet: Uint8Array): Uint8Array {
    const { stream, tag } = this.#rtcp;
    const end = packet.length;
    const out = new Uint8Array(end + rtcpIndexBytes + tag.bytes);
    out.set(packet);
    const index = this.#counters.nextRtcpIndex();
    stream.apply(out, rtcpClearBytes, end, uint32(packet, 4), index);
    new DataView(out.buffer).setUint32(end, encryptedFlag + index);
    tag.write(out, end + rtcpIndexBytes, undefined);
    return out;
  }
}

/** RFC 3711, sections 3.2.1 and 9.2: a key ends with its last index. A call ends long before. */
const maxRollover = 2 ** 32 - 1;
const maxRtcpIndex = 2 ** 31 - 1;

/** The counters of one session's RTP stream and of its reports. */
export class SrtpCounters {
  #lastSequence = -1;
  #rollover: number;
  #rtcpIndex: number;

  constructor({ rollover = 0, rtcpIndex = 0 } = {}) {
    this.#rollover = rollover;
    this.#rtcpIndex = rtcpIndex;
  }

  /** Call it once for each packet that is encrypted, in order. */
  rolloverOf(sequence: number): number {
    if (sequence < this.#lastSequence) this.#rollover += 1;
    this.#lastSequence = sequence;
    return unused(this.#rollover, maxRollover);
  }

  nextRtcpIndex(): number {
    const index = unused(this.#rtcpIndex, maxRtcpIndex);
    this.#rtcpIndex += 1;
    return index;
  }
}

/** Throws rather than use an index twice, because that reveals both packets (section 9.1). */
function unused(counter: number, max: number): number {
  if (counter > max) throw new RangeError('a key of SRTP is used up');
  return counter;
}
