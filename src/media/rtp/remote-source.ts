// Symmetric RTP (RFC 4961) with latching (RFC 7362). Media goes to the address in the SDP until
// packets show where the far end really is, behind its NAT. After the first seconds that address is
// locked. An attacker who finds the port by spraying packets ("RTPBleed") then can neither be heard
// nor divert the audio. A locked source follows one kind of move only: a NAT that gave the far end
// another port in mid-call, without a re-INVITE.

import { sequenceDistance } from './rtp-packet.ts';

/**
 * 3 s from the first packet: by then NATs and media relays have settled, and an attacker has had
 * little time to guess.
 */
const learningFrames = 150;
/** 0.5 s without a packet: the source may have moved, and another one may replace it. */
const silentFrames = 25;
/** Packets in a row, with one SSRC, that move the source. A single stray packet moves nothing. */
const packetsToBelieve = 2;
/** Longest step of the candidate's sequence numbers: packets in between may be lost. */
const maxSequenceGap = 5;
const silentFramesOfSsrc = 3;

export class RemoteSource {
  #signalledAddress = '';
  #signalledPort = 0;
  /** Where the SDP says that the far end's RTCP is. */
  #rtcpAddress = '';
  #rtcpPort = 0;
  /** Where media is sent to and received from. */
  #address = '';
  #port = 0;
  #heard = false;
  #framesSinceHeard = 0;
  /** The SSRC of the last packet that was accepted. */
  #ssrc = 0;
  #unreachable = false;
  /** Undefined until the first packet since the last signalling. */
  #learningFramesLeft: number | undefined;
  /** A sender at another address, which may be the far end after a move. */
  #candidate = { address: '', port: 0, ssrc: 0, sequence: 0, packets: 0 };

  get address(): string {
    return this.#address;
  }

  get port(): number {
    return this.#port;
  }

  get locked(): boolean {
    return this.#learningFramesLeft === 0;
  }

  /**
   * Whether the source is locked and was heard recently. While it is, no packet from elsewhere is
   * accepted.
   */
  get settled(): boolean {
    return this.locked && this.#framesSinceHeard < silentFrames && !this.#unreachable;
  }

  /**
   * Records an ICMP error for the address to which media is sent. The source counts as unsettled
   * until it changes.
   */
  markUnreachable(): void {
    this.#unreachable = true;
  }

  /**
   * Sets the address of an offer or answer. Unlocks the source, because the far end may have moved.
   */
  signal(address: string, port: number): void {
    const moved = address !== this.#signalledAddress || port !== this.#signalledPort;
    this.#signalledAddress = address;
    this.#signalledPort = port;
    this.#learningFramesLeft = undefined;
    this.#candidate.packets = 0;
    this.#unreachable = false;
    // The same address again (hold, resume): what was learned about the NAT in front of it stays
    // valid until packets disprove it.
    if (!moved) return;
    this.#address = address;
    this.#port = port;
    this.#heard = false;
  }

  /** Sets the RTCP address of an offer or answer. */
  signalRtcp(address: string, port: number): void {
    this.#rtcpAddress = address;
    this.#rtcpPort = port;
  }

  /** Advances the time by 20 ms. */
  tick(): void {
    this.#framesSinceHeard += 1;
    if (this.#learningFramesLeft !== undefined && this.#learningFramesLeft > 0) {
      this.#learningFramesLeft -= 1;
    }
  }

  /**
   * Returns whether a well-formed packet from this address is the far end's. May move the source to
   * it.
   */
  accept(address: string, port: number, ssrc: number, sequence: number): boolean {
    if (port === this.#port && address === this.#address) {
      this.#hear(ssrc);
      return true;
    }
    if (!this.#mayMoveTo(address, port, ssrc)) return false;
    if (!this.#believes(address, port, ssrc, sequence)) return false;
    this.#address = address;
    this.#port = port;
    this.#candidate.packets = 0;
    this.#unreachable = false;
    this.#hear(ssrc);
    return true;
  }

  /**
   * Returns whether RTCP from this address, sent by this SSRC, is the far end's. The host alone
   * proves nothing: a media relay serves hundreds of calls from one address, and may keep reporting
   * for a call that had our port before. One of these conditions must hold:
   * - The SDP names the address for RTCP: by `a=rtcp` (RFC 3605), or as the port above the RTP port
   *   (RFC 3550, section 11).
   * - The host is that of the audio, and the port is the audio's or the one above it. It is the
   *   audio's port if the far end multiplexes (RFC 5761) without an agreement, and the one above
   *   behind a NAT that keeps the two together.
   * - Host and SSRC are those of the audio: the NAT chose another port.
   */
  reportsFrom(address: string, port: number, ssrc: number): boolean {
    if (address === this.#rtcpAddress && port === this.#rtcpPort) return true;
    if (address !== this.#address) return false;
    if (port === this.#port || port === this.#port + 1) return true;
    return this.#heard && ssrc === this.#ssrc;
  }

  #hear(ssrc: number): void {
    this.#heard = true;
    this.#ssrc = ssrc;
    this.#framesSinceHeard = 0;
    this.#learningFramesLeft ??= learningFrames;
  }

  #mayMoveTo(address: string, port: number, ssrc: number): boolean {
    const silent = this.#framesSinceHeard >= silentFrames;
    // A NAT's new mapping has the host and the sender of the old one. An attacker off the path does
    // not know the SSRC (RFC 3550, section 8.1). From the same host only the far end's neighbours
    // could send.
    if (this.locked) return silent && address === this.#address && ssrc === this.#ssrc;
    if (!this.#heard || silent) return true;
    return this.#standing(address, port) > this.#standing(this.#address, this.#port);
  }

  /**
   * Ranks addresses: the signalled address is best, its host with another port (a NAT's) is second,
   * any other address is last.
   */
  #standing(address: string, port: number): number {
    if (address !== this.#signalledAddress) return 0;
    return port === this.#signalledPort ? 2 : 1;
  }

  #believes(address: string, port: number, ssrc: number, sequence: number): boolean {
    const candidate = this.#candidate;
    const gap = sequenceDistance(sequence, candidate.sequence);
    const continues =
      candidate.packets > 0 &&
      address === candidate.address &&
      port === candidate.port &&
      ssrc === candidate.ssrc &&
      gap > 0 &&
      gap <= maxSequenceGap;
    const packets = continues ? candidate.packets + 1 : 1;
    this.#candidate = { address, port, ssrc, sequence, packets };
    return packets >= packetsToBelieve;
  }
}

/**
 * Accepts the packets of one sender at a time from one address, where two may overlap in a forked
 * or transferred call. The present sender must be silent for three frames before another SSRC takes
 * over: if both send at once, packets of both may be waiting to be read.
 */
export class PresentSsrc {
  readonly #onChange: () => void;
  #ssrc: number | undefined;
  #frames = 0;
  #candidate: number | undefined;
  #candidateSequence = 0;

  /** `onChange` is called when another sender takes over. */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** Advances the time by 20 ms. */
  tick(): void {
    this.#frames += 1;
  }

  accept(ssrc: number, sequence: number): boolean {
    if (ssrc === this.#ssrc || this.#ssrc === undefined) {
      this.#take(ssrc);
      return true;
    }
    const confirmed =
      ssrc === this.#candidate && sequenceDistance(sequence, this.#candidateSequence) > 0;
    this.#candidate = ssrc;
    this.#candidateSequence = sequence;
    if (!confirmed || this.#frames < silentFramesOfSsrc) return false;
    this.#take(ssrc);
    this.#onChange();
    return true;
  }

  #take(ssrc: number): void {
    this.#ssrc = ssrc;
    this.#frames = 0;
    this.#candidate = undefined;
  }
}
