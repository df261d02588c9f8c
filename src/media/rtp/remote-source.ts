// Symmetric RTP (RFC 4961) with latching (RFC 7362). The far end may be behind a NAT, so we only
// send media to the address in the SDP until incoming packets show where the far end really is.
// That address is locked after the first few seconds. From then on, attackers who find the port by
// spraying packets ("RTPBleed") can't be heard and can't divert the audio. A locked source follows
// just one kind of move: a NAT that assigns another port in mid-call, without a re-INVITE.

import { sequenceDistance } from './rtp-packet.ts';

/**
 * We keep learning for 3 s after the first packet. By then NATs and media relays have usually
 * stabilised, and an attacker hasn't had much time to guess.
 */
const learningFrames = 150;
/**
 * If the far end has been silent for 0.5 s, it may have moved, so another address may replace it.
 */
const silentFrames = 25;
/**
 * The source moves only after this many consecutive packets with the same SSRC, so a single stray
 * packet can't move it.
 */
const packetsToConfirm = 2;
/**
 * Sequence numbers up to this far apart still count as consecutive, because packets in between may
 * have been lost.
 */
const maxSequenceGap = 5;
const silentSsrcFrames = 3;

export class RemoteSource {
  #signalledAddress = '';
  #signalledPort = 0;
  /** The far end's RTCP address, according to the SDP. */
  #rtcpAddress = '';
  #rtcpPort = 0;
  /** Where the far end's last report came from. */
  #reportedFrom: { readonly address: string; readonly port: number } | undefined;
  /** The address that we send media to and accept it from. */
  #address = '';
  #port = 0;
  #heard = false;
  #framesSinceHeard = 0;
  /** The SSRC of the last accepted packet. */
  #ssrc = 0;
  #unreachable = false;
  /** Undefined until the first packet after `signal`. 0 once the source is locked. */
  #learningFramesLeft: number | undefined;
  /** A sender at a different address, which may be the far end after it has moved. */
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
   * True if the source is locked and reachable, and we've heard it recently. A stable source
   * rejects packets from other addresses.
   */
  get isStable(): boolean {
    return this.locked && this.#framesSinceHeard < silentFrames && !this.#unreachable;
  }

  /**
   * Records an ICMP error for the address that we're sending media to. The source isn't stable
   * again until its address changes or is signalled again.
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
    // The address hasn't changed, e.g. after hold or resume. What we've learned about its NAT
    // remains valid until packets disprove it.
    if (!moved) return;
    this.#address = address;
    this.#port = port;
    this.#heard = false;
  }

  /** Sets the RTCP address from an offer or answer. */
  signalRtcp(address: string, port: number): void {
    const isSame = address === this.#rtcpAddress && port === this.#rtcpPort;
    this.#rtcpAddress = address;
    this.#rtcpPort = port;
    // Behind a NAT, what the far end's reports have shown us remains valid.
    if (!isSame) this.#reportedFrom = undefined;
  }

  /**
   * Where our reports go: to where the far end's reports come from (RFC 4961). The port is 0 if the
   * far end has no RTCP. A host that sent a report counts only as long as the audio comes from it.
   * An attacker that was heard while we were learning must not keep our reports.
   */
  get rtcpTarget(): { readonly address: string; readonly port: number } {
    if (this.#reportedFrom?.address === this.#address) return this.#reportedFrom;
    return { address: this.#rtcpAddress, port: this.#rtcpPort };
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
   * Decides whether RTCP from this address and SSRC comes from the far end. A matching host alone
   * proves nothing: a media relay serves hundreds of calls from one address, and may still be
   * sending reports for the previous call on our port. So we require one of these conditions:
   * - The SDP names this address for RTCP, either with `a=rtcp` (RFC 3605), or as the port above
   *   the RTP port (RFC 3550, section 11).
   * - The report comes from the audio's host, and from either the audio's port or the one above it.
   *   The same port means that the far end is multiplexing (RFC 5761) although we haven't
   *   negotiated that. The port above is typical of a NAT that keeps port pairs together.
   * - Both host and SSRC match the audio, which means that a NAT has picked an unrelated port.
   */
  reportsFrom(address: string, port: number, ssrc: number): boolean {
    const isTheirs = this.#mayReport(address, port, ssrc);
    if (isTheirs) this.#reportedFrom = { address, port };
    return isTheirs;
  }

  #mayReport(address: string, port: number, ssrc: number): boolean {
    if (address === this.#rtcpAddress && port === this.#rtcpPort) return true;
    if (address !== this.#address) return false;
    if (port === this.#port || port === this.#port + 1) return true;
    return this.#heard && ssrc === this.#ssrc;
  }

  /** True if we've accepted packets from this address, and still do. */
  isAt(address: string, port: number): boolean {
    return this.#heard && port === this.#port && address === this.#address;
  }

  #markHeard(ssrc: number): void {
    this.#heard = true;
    this.#ssrc = ssrc;
    this.#framesSinceHeard = 0;
    this.#learningFramesLeft ??= learningFrames;
  }

  #mayMoveTo(address: string, port: number, ssrc: number): boolean {
    const silent = this.#framesSinceHeard >= silentFrames;
    // When a NAT changes the mapping, the host and SSRC stay the same. Off-path attackers don't
    // know the SSRC (RFC 3550, section 8.1), and only the far end's neighbours behind the same NAT
    // could send from its host.
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
 * Accepts packets from one SSRC at a time. In a forked or transferred call, two senders may
 * overlap, and the socket may contain packets from either of them. A new SSRC therefore takes over
 * only after the current one has been silent for three frames.
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

  isCurrent(ssrc: number): boolean {
    return ssrc === this.#ssrc;
  }

  #take(ssrc: number): void {
    this.#ssrc = ssrc;
    this.#frames = 0;
    this.#candidate = undefined;
  }
}
