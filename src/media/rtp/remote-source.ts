// Symmetric RTP (RFC 4961) with latching (RFC 7362). We send media to the address in the SDP until
// packets show where the far end really is, which may be behind a NAT. That address is locked after
// the first seconds. From then on, attackers who find the port by spraying packets ("RTPBleed")
// can't be heard and can't divert the audio. A locked source follows just one kind of move: a NAT
// that assigns another port in mid-call, without a re-INVITE.

import { sequenceDistance } from './rtp-packet.ts';

/**
 * 3 s from the first packet. By then NATs and media relays have usually stabilised, and an attacker
 * hasn't had much time to guess.
 */
const learningFrames = 150;
/**
 * 0.5 s. If the far end has been silent for this long, it may have moved, so another address may
 * replace it.
 */
const silentFrames = 25;
/**
 * How many consecutive packets with the same SSRC it takes to move the source. A single stray
 * packet doesn't move it.
 */
const packetsToConfirm = 2;
/**
 * Maximum step between sequence numbers that we consider consecutive. Packets in between may have
 * been lost.
 */
const maxSequenceGap = 5;
const silentSsrcFrames = 3;

export class RemoteSource {
  #signalledAddress = '';
  #signalledPort = 0;
  /** The far end's RTCP address, according to the SDP. */
  #rtcpAddress = '';
  #rtcpPort = 0;
  /** Address to which we send media, and from which we accept it. */
  #address = '';
  #port = 0;
  #heard = false;
  #framesSinceHeard = 0;
  /** The SSRC of the last accepted packet. */
  #ssrc = 0;
  #unreachable = false;
  /** Undefined until the first packet after `signal`. 0 once the source is locked. */
  #learningFramesLeft: number | undefined;
  /** A sender at a different address, which may be the far end after a move. */
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
   * Whether the source is locked, reachable, and was heard recently. A stable source rejects
   * packets from other addresses.
   */
  get isStable(): boolean {
    return this.locked && this.#framesSinceHeard < silentFrames && !this.#unreachable;
  }

  /**
   * Records an ICMP error for the address to which we send media. The source isn't stable again
   * until its address changes or is signalled again.
   */
  markUnreachable(): void {
    this.#unreachable = true;
  }

  /**
   * Sets the address from an offer or answer. This unlocks the source, because the far end may have
   * moved.
   */
  signal(address: string, port: number): void {
    const moved = address !== this.#signalledAddress || port !== this.#signalledPort;
    this.#signalledAddress = address;
    this.#signalledPort = port;
    this.#learningFramesLeft = undefined;
    this.#candidate.packets = 0;
    this.#unreachable = false;
    // The address is unchanged, e.g. after hold or resume. What we've learned about its NAT remains
    // valid until packets disprove it.
    if (!moved) return;
    this.#address = address;
    this.#port = port;
    this.#heard = false;
  }

  /** Sets the RTCP address from an offer or answer. */
  signalRtcp(address: string, port: number): void {
    this.#rtcpAddress = address;
    this.#rtcpPort = port;
  }

  /** Advances the clock by 20 ms. */
  tick(): void {
    this.#framesSinceHeard += 1;
    if (this.#learningFramesLeft !== undefined && this.#learningFramesLeft > 0) {
      this.#learningFramesLeft -= 1;
    }
  }

  /**
   * Decides whether a well-formed packet from this address comes from the far end. This may move
   * the source to that address.
   */
  accept(address: string, port: number, ssrc: number, sequence: number): boolean {
    if (port === this.#port && address === this.#address) {
      this.#markHeard(ssrc);
      return true;
    }
    if (!this.#mayMoveTo(address, port, ssrc)) return false;
    if (!this.#isConfirmed(address, port, ssrc, sequence)) return false;
    this.#address = address;
    this.#port = port;
    this.#candidate.packets = 0;
    this.#unreachable = false;
    this.#markHeard(ssrc);
    return true;
  }

  /**
   * Decides whether RTCP from this address and SSRC comes from the far end. The host alone proves
   * nothing: a media relay serves hundreds of calls from one address, and may still be sending
   * reports for the previous call on our port. So we require one of these conditions:
   * - The SDP names this address for RTCP, either with `a=rtcp` (RFC 3605), or as the port above
   *   the RTP port (RFC 3550, section 11).
   * - It's the audio's host, and either the audio's port or the one above it. The same port means
   *   that the far end multiplexes (RFC 5761) without having negotiated that. The port above is
   *   typical of a NAT that keeps port pairs together.
   * - Both host and SSRC match the audio, so a NAT must have picked an unrelated port.
   */
  reportsFrom(address: string, port: number, ssrc: number): boolean {
    if (address === this.#rtcpAddress && port === this.#rtcpPort) return true;
    if (address !== this.#address) return false;
    if (port === this.#port || port === this.#port + 1) return true;
    return this.#heard && ssrc === this.#ssrc;
  }

  #markHeard(ssrc: number): void {
    this.#heard = true;
    this.#ssrc = ssrc;
    this.#framesSinceHeard = 0;
    this.#learningFramesLeft ??= learningFrames;
  }

  #mayMoveTo(address: string, port: number, ssrc: number): boolean {
    const silent = this.#framesSinceHeard >= silentFrames;
    // A new NAT mapping keeps the host and SSRC. Off-path attackers don't know the SSRC (RFC 3550,
    // section 8.1), and only the far end's neighbours behind the same NAT could send from its host.
    if (this.locked) return silent && address === this.#address && ssrc === this.#ssrc;
    if (!this.#heard || silent) return true;
    return this.#rank(address, port) > this.#rank(this.#address, this.#port);
  }

  /**
   * Ranks an address: 2 for the signalled address, 1 for its host with a different port (as
   * assigned by a NAT), 0 for anything else.
   */
  #rank(address: string, port: number): number {
    if (address !== this.#signalledAddress) return 0;
    return port === this.#signalledPort ? 2 : 1;
  }

  #isConfirmed(address: string, port: number, ssrc: number, sequence: number): boolean {
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
    return packets >= packetsToConfirm;
  }
}

/**
 * Accepts packets from one SSRC at a time. Two senders may overlap in a forked or transferred call,
 * and both may have packets waiting in the socket. A new SSRC therefore takes over only after the
 * current one has been silent for three frames.
 */
export class CurrentSsrc {
  readonly #onChange: () => void;
  #ssrc: number | undefined;
  #frames = 0;
  #candidate: number | undefined;
  #candidateSequence = 0;

  /** `onChange` is called when another sender takes over. */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** Advances the clock by 20 ms. */
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
    if (!confirmed || this.#frames < silentSsrcFrames) return false;
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
