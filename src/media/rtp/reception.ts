// The receiving side of a call. It accepts packets from the far end, and passes the listeners its
// keys and, every 20 ms, a frame of its audio. Once we're certain of the far end's address, we
// connect the socket to it. We also report it if the far end hasn't sent anything for too long.

import type { EnvelopeRecorder } from '../envelope-recorder.ts';
import { decodeTable } from '../g711.ts';
import { tickMs } from '../playout/playout.ts';
import type { RtcpSession } from '../rtcp/rtcp-session.ts';
import { comfortNoisePayloadType, hasMoved, type RemoteMedia } from '../sdp.ts';
import { type Rejection, receiverFor, type SrtpReceiver } from '../srtp/srtp-receiver.ts';
import { DtmfReceiver } from './dtmf-receiver.ts';
import { createPlayoutCounts, type PlayoutCounts } from './jitter-buffer.ts';
import type { Listeners } from './listeners.ts';
import { ReceivedAudio } from './received-audio.ts';
import { CurrentSsrc, type RemoteSource } from './remote-source.ts';
import { isRtcp, type RtpHeader, readRtcpSender, readRtp } from './rtp-packet.ts';
import type { PacketKind, RtpSessionOptions, RtpSessionSink } from './rtp-session-ports.ts';
import type { Transmission } from './transmission.ts';
import { UnheardAudio } from './unheard-audio.ts';

type ReceptionSink = Pick<RtpSessionSink, 'connect' | 'disconnect' | 'report'>;

export class Reception {
  readonly #options: RtpSessionOptions;
  readonly #source: RemoteSource;
  readonly #rtcp: RtcpSession;
  readonly #listeners: Listeners;
  readonly #sink: ReceptionSink;
  readonly #kinds = new Map<number, PacketKind>();
  readonly #dtmf: DtmfReceiver;
  readonly #ssrc = new CurrentSsrc(() => {
    this.#audio?.reset();
    this.#dtmf.reset();
  });
  #remote: RemoteMedia | undefined;
  /**
   * Records the far end's loudness. Undefined before the answer, because until then we only receive
   * ringback and announcements.
   */
  #envelope: EnvelopeRecorder | undefined;
  #isConnected = false;
  /** Undefined unless the far end encrypts its audio. */
  #srtp: SrtpReceiver | undefined;
  /** Undefined unless a listener needs frames. */
  #audio: ReceivedAudio | undefined;
  /** Counts what the listeners missed, over the whole call. */
  readonly playout: PlayoutCounts = createPlayoutCounts();
  readonly #unheard = new UnheardAudio(this.playout);
  #quietFrames = 0;
  /**
   * The other end of the bridge, to which we relay packets. Undefined if we aren't relaying
   * anything.
   */
  #partner: Transmission | undefined;

  constructor(
    options: RtpSessionOptions,
    { source, rtcp }: { readonly source: RemoteSource; readonly rtcp: RtcpSession },
    listeners: Listeners,
    sink: ReceptionSink,
  ) {
    this.#options = options;
    this.#source = source;
    this.#rtcp = rtcp;
    this.#listeners = listeners;
    this.#sink = sink;
    this.#dtmf = new DtmfReceiver(
      (digit, durationMs) => listeners.onKey(digit, durationMs),
      listeners,
    );
  }

  /**
   * Applies the far end's description. `envelope` is undefined before the answer.
   *
   * @returns whether the far end may have moved
   */
  apply(remote: RemoteMedia, envelope: EnvelopeRecorder | undefined): boolean {
    const before = this.#remote;
    const isAnswer = envelope !== undefined && this.#envelope === undefined;
    const mayHaveMoved = before === undefined || isAnswer || hasMoved(before, remote);
    this.#remote = remote;
    this.#srtp = receiverFor(remote.srtp?.theirs, this.#srtp);
    this.#envelope ??= envelope;
    this.#quietFrames = 0;
    this.#kinds.clear();
    this.#kinds.set(comfortNoisePayloadType, 'noise');
    for (const type of remote.comfortNoise ?? []) this.#kinds.set(type, 'noise');
    for (const type of remote.receive.PCMU) this.#kinds.set(type, 'PCMU');
    for (const type of remote.receive.PCMA) this.#kinds.set(type, 'PCMA');
    for (const type of remote.telephoneEvents) this.#kinds.set(type, 'event');
    // The old form of hold (0.0.0.0) doesn't contain an address, so keep the one at which we last
    // heard the far end.
    if (remote.addressWithheld) return false;
    this.#source.signalRtcp(remote.rtcp.address, remote.rtcp.port);
    // An offer that changes nothing, e.g. a session timer refresh, must not unlock the source.
    if (!mayHaveMoved) return false;
    this.#source.signal(remote.address, remote.port);
    this.#connectOrDisconnect();
    return true;
  }

  /**
   * Relays received packets to `partner`'s far end, while any listeners here keep receiving them,
   * too. `onFirst` is called when the first audio packet is relayed.
   */
  relayTo(partner: Transmission, onFirst: () => void): void {
    this.#partner = partner;
    partner.startRelay(onFirst);
  }

  stopRelay(): void {
    this.#partner?.stopRelay();
    this.#partner = undefined;
  }

  receive(datagram: Uint8Array, address: string, port: number): void {
    // Some far ends send RTCP to the audio's port, although nobody has negotiated that (RFC 5761).
    if (isRtcp(datagram)) {
      this.receiveRtcp(datagram, address, port);
      return;
    }
    const packet = this.#srtp === undefined ? datagram : this.#srtp.unprotect(datagram);
    if (typeof packet === 'string') this.#reject(packet);
    else this.#receivePlain(packet, address, port);
  }

  #reject(rejection: Rejection): void {
    const { counts } = this.#options;
    counts.discarded += 1;
    if (rejection === 'forged') counts.forged += 1;
  }

  #receivePlain(packet: Uint8Array, address: string, port: number): void {
    const { counts, scratch } = this.#options;
    const { header } = scratch;
    const isRtp = readRtp(packet, header);
    const kind = isRtp ? this.#kinds.get(header.payloadType) : undefined;
    if (kind === undefined || !this.#isFromFarEnd(header, address, port)) {
      counts.discarded += 1;
      if (isRtp && kind === undefined) this.#noteUnknown(header, address, port);
      return;
    }
    counts.received += 1;
    this.#quietFrames = 0;
    if (this.#envelope !== undefined) this.#rtcp.noteReceived(header, kind !== 'event');
    if (kind !== 'noise') this.#partner?.relayPacket(packet, header, kind);
    if (this.#envelope === undefined) return;
    const { payloadStart, payloadEnd, timestamp } = header;
    if (kind === 'event') this.#dtmf.receive(packet, payloadStart, payloadEnd, timestamp);
    else if (kind !== 'noise') this.#envelope.hear(packet, payloadStart, payloadEnd, kind);
    if (this.#listeners.needFrames) this.#store(packet, kind);
  }

  #store(packet: Uint8Array, kind: PacketKind): void {
    const { counts, scratch } = this.#options;
    const { header } = scratch;
    this.#audio ??= new ReceivedAudio(counts.jitter, this.playout);
    if (kind === 'event') this.#audio.note(header.sequence);
    else if (kind === 'noise') this.#audio.pause(packet, header);
    else this.#audio.put(packet, header, decodeTable[kind]);
  }

  /**
   * Counts a packet from the far end with a payload type that we didn't offer, e.g. of a codec that
   * an SBC let through. We can't play it, but the network didn't lose it.
   */
  #noteUnknown(header: RtpHeader, address: string, port: number): void {
    if (this.#envelope === undefined) return;
    if (!this.#source.isAt(address, port) || !this.#ssrc.isCurrent(header.ssrc)) return;
    this.#rtcp.noteReceived(header, false);
    this.#audio?.note(header.sequence);
  }

  /**
   * Handles a report. It's also a sign of life, because some far ends don't send any audio while
   * the person is silent.
   */
  receiveRtcp(datagram: Uint8Array, address: string, port: number): void {
    const packet = this.#srtp === undefined ? datagram : this.#srtp.unprotectRtcp(datagram);
    if (typeof packet === 'string') {
      this.#reject(packet);
      return;
    }
    const sender = readRtcpSender(packet);
    if (sender !== undefined && this.#source.reportsFrom(address, port, sender)) {
      this.#quietFrames = 0;
      this.#rtcp.receive(packet);
    } else this.#options.counts.discarded += 1;
  }

  /**
   * Handles an ICMP error caused by a packet that we sent. The call continues, because a BYE or a
   * new address may be on its way.
   */
  unreachable(): void {
    this.#source.markUnreachable();
    this.#connectOrDisconnect();
  }

  /** Advances the reception by 20 ms. `isInTime` is false while the clock is running late. */
  tick(isInTime: boolean): void {
    this.#source.tick();
    this.#connectOrDisconnect();
    this.#dtmf.tick();
    this.#ssrc.tick();
    if (this.#envelope === undefined) return;
    this.#listen(isInTime);
    this.#watchActivity();
  }

  #listen(isInTime: boolean): void {
    if (!this.#listeners.needFrames) {
      this.#audio = undefined;
      return;
    }
    const { counts, scratch } = this.#options;
    if (!isInTime) counts.framesLate += 1;
    this.#audio ??= new ReceivedAudio(counts.jitter, this.playout);
    const isReceived = this.#audio.take(scratch.heard, scratch.arrived);
    const unheardMs = this.#unheard.tick(isInTime, this.#audio.isMissing);
    counts.framesUnheard += unheardMs / tickMs;
    this.#listeners.hear(scratch.heard, scratch.arrived, isReceived, unheardMs);
  }

  #watchActivity(): void {
    // During hold, either side may be silent indefinitely.
    if (this.#remote?.weSend !== true || !this.#remote.theySend) return;
    this.#quietFrames += 1;
    if (this.#quietFrames === this.#options.inactivityFrames)
      this.#sink.report({ kind: 'inactive' });
  }

  #isFromFarEnd({ ssrc, sequence }: RtpHeader, address: string, port: number): boolean {
    if (!this.#source.accept(address, port, ssrc, sequence)) return false;
    return this.#ssrc.accept(ssrc, sequence);
  }

  #connectOrDisconnect(): void {
    const { isStable, port, address } = this.#source;
    if (isStable === this.#isConnected) return;
    this.#isConnected = isStable;
    if (isStable) this.#sink.connect(port, address);
    else this.#sink.disconnect();
  }
}
