// Symmetric RTP (RFC 4961) with latching (RFC 7362). Media goes to the address in the SDP until
// packets show where the far end really is, behind its NAT. After the first seconds that address is
// locked. An attacker who finds the port by spraying packets ("RTPBleed") can then neither be heard
// nor divert the audio. A locked source follows only one kind of move: a NAT that assigns another
// port in mid-call, without a re-INVITE.

import { sequenceDistance } from './rtp-packet.ts';

/**
 * 3 s from the first packet. By then NATs and media relays have stabilised, and an attacker has had
 * little time to guess.
 */
const learningFrames = 150;
/** After 0.5 s without a packet, the far end may have moved, and another address may replace it. */
const silentFrames = 25;
/** Consecutive packets with one SSRC that move the source. A single stray packet does not. */
const packetsToBelieve = 2;
/** Largest step between consecutive sequence numbers. Packets in between may be lost. */
const maxSequenceGap = 5;
const silentFramesOfSsrc = 3;

export class RemoteSource {
  #signalledAddress = '';
  #signalledPort = 0;
  /** The far end's RTCP address, according to SDP. */
  #rtcpAddress = '';
  #rtcpPort = 0;
  /** Address to which media is sent and from which it is accepted. */
  #address = '';
  #port = 0;
  #heard = false;
  #framesSinceHeard = 0;
  /** The SSRC of the last accepted packet. */
  #ssrc = 0;
  #unreachable = false;
  /** Undefined until the first packet after `signal`. 0 if locked. */
  #learningFramesLeft: number | undefined;
  /** A sender at another address, possibly the far end after a move. */
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
   * Whether the source is locked, was heard recently and is reachable. While it is, packets from
   * other addresses are rejected.
   */
  get isStable(): boolean {
    return this.locked && this.#framesSinceHeard < silentFrames && !this.#unreachable;
  }

  /**
   * Records an ICMP error for the address to which media is sent. The source is not stable until
   * the address changes or is signalled again.
   */
  markUnreachable(): void {
    this.#unreachable = true;
  }

  /**
   * Sets the address from an offer or answer. Unlocks the source, because the far end may have
   * moved.
   */
  signal(address: string, port: number): void {
    const moved = address !== this.#signalledAddress || port !== this.#signalledPort;
    this.#signalledAddress = address;
    this.#signalledPort = port;
    this.#learningFramesLeft = undefined;
    this.#candidate.packets = 0;
    this.#unreachable = false;
    // The address is unchanged, for example after hold or resume. What we learned about its NAT
    // stays valid until packets disprove it.
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

  /** Advances the time by 20 ms. */
  tick(): void {
    this.#framesSinceHeard += 1;
    if (this.#learningFramesLeft !== undefined && this.#learningFramesLeft > 0) {
      this.#learningFramesLeft -= 1;
    }
  }

  /**
   * Decides whether a well-formed packet from this address is the far end's. May move the source
   * there.
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
   * Decides whether RTCP from this address and SSRC is the far end's. The host alone proves
   * nothing: a media relay serves hundreds of calls from one address, and may still be reporting
   * for the previous call on our port. One of these conditions must hold:
   * - The SDP names the address for RTCP: by `a=rtcp` (RFC 3605), or as the port above the RTP port
   *   (RFC 3550, section 11).
   * - The host is the audio's host, and the port is the audio's port or the one above it. The same
   *   port means that the far end multiplexes (RFC 5761) without having negotiated it. The port
   *   above is typical of a NAT that keeps port pairs together.
   * - Host and SSRC are the audio's. The NAT chose an unrelated port.
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
    // A new NAT mapping has the same host and SSRC as the old one. An attacker off the path does
    // not know the SSRC (RFC 3550, section 8.1), and only the far end's neighbours behind the same
    // NAT could send from its host.
    if (this.locked) return silent && address === this.#address && ssrc === this.#ssrc;
    if (!this.#heard || silent) return true;
    return this.#standing(address, port) > this.#standing(this.#address, this.#port);
  }

  /**
   * Ranks an address: 2 for the signalled address, 1 for its host with another port (as a NAT
   * assigns), 0 for any other address.
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
 * Accepts packets of one SSRC at a time from one address. In a forked or transferred call, two
 * senders may overlap. The current one must be silent for three frames before another SSRC takes
 * over, because packets of both may be waiting in the socket.
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
