// One call's audio, driven from outside: `receive` with every packet, `tick` every 20 ms. Knows neither sockets nor
// timers, so that tests run it on a clock of their own.

import { type AmdSettings, assertNever } from '../../calls/call-types.ts';
import type { AudioEnvelope } from '../../calls/capture/capture.ts';
import type { AmdEvent } from '../../calls/detection/amd-event.ts';
import type { MediaCommand } from '../../calls/media.ts';
import type { CallPlans } from '../../calls/plans/plans.ts';
import { Detection } from '../detection.ts';
import { EnvelopeRecorder } from '../envelope-recorder.ts';
import { decodeTable, encodeMulawFrame, powerOf } from '../g711.ts';
import { PlannedCall } from '../plans/call-plans.ts';
import { settingsOfLaterRound } from '../plans/later-round.ts';
import { tickMs } from '../playout/playout.ts';
import { SoundPlayer } from '../playout/sound-player.ts';
import { comfortNoisePayloadType, hasMoved, type RemoteMedia } from '../sdp.ts';
import { SessionStream } from '../session-stream.ts';
import { DtmfReceiver } from './dtmf-receiver.ts';
import { JitterBuffer } from './jitter-buffer.ts';
import { KeySender } from './key-sender.ts';
import { PresentSsrc, RemoteSource } from './remote-source.ts';
import { type RtpHeader, readRtcpSender, readRtp, rtpHeaderBytes } from './rtp-packet.ts';
import { RtpRelay } from './rtp-relay.ts';
import { RtpSender, SilencePacing } from './rtp-sender.ts';
import type {
  PacketKind,
  RtpCounts,
  RtpSessionOptions,
  RtpSessionSink,
} from './rtp-session-ports.ts';

export class RtpSession {
  readonly #options: RtpSessionOptions;
  readonly #sink: RtpSessionSink;
  readonly #counts: RtpCounts;
  readonly #source = new RemoteSource();
  #connected = false;
  readonly #dtmf: DtmfReceiver;
  readonly #sender: RtpSender;
  readonly #silence: SilencePacing;
  readonly #kinds = new Map<number, PacketKind>();
  #remote: RemoteMedia | undefined;
  #answered = false;
  #envelope: EnvelopeRecorder | undefined;
  #quietFrames = 0;
  #detection: Detection | undefined;
  /** In this round. */
  #hasStated = false;
  #settings: AmdSettings | undefined;
  #plans: PlannedCall | undefined;
  #sentPower = 0;
  #round = 1;
  #heardFrames = 0;
  #roundStartFrames = 0;
  readonly streaming: SessionStream;
  readonly #player: SoundPlayer;
  readonly #keys: KeySender;
  /** The other end of a bridge: hears what is heard here. */
  #listener: RtpSession | undefined;
  /** What comes from the other end of a bridge. */
  #relay: RtpRelay | undefined;
  #jitter: JitterBuffer | undefined;
  readonly #ssrc = new PresentSsrc(() => {
    this.#jitter?.reset();
    this.#dtmf.reset();
  });

  constructor(options: RtpSessionOptions, sink: RtpSessionSink, counts: RtpCounts) {
    this.#options = options;
    this.#sink = sink;
    this.#counts = counts;
    this.#sender = new RtpSender(options);
    this.#silence = new SilencePacing(options.silenceFrames);
    this.#keys = new KeySender(this.#sender, (report) => sink.tell({ kind: 'keysSent', report }));
    this.#player = new SoundPlayer((report) => {
      sink.tell({ kind: 'playback', report });
      this.#plans?.played(report);
    });
    this.streaming = new SessionStream(this.#player);
    this.#dtmf = new DtmfReceiver((digit, durationMs) => {
      sink.tell({ kind: 'dtmf', digit, durationMs });
      this.streaming.tellDigit(digit);
    });
  }

  /** An early answer, the answer, or what a re-offer came to. */
  applyRemote(remote: RemoteMedia, phase: 'early' | 'answer'): void {
    const before = this.#remote;
    const changed = before === undefined || (phase === 'answer' && !this.#answered);
    this.#remote = remote;
    this.#kinds.clear();
    this.#kinds.set(comfortNoisePayloadType, 'noise');
    for (const type of remote.receive.PCMU) this.#kinds.set(type, 'PCMU');
    for (const type of remote.receive.PCMA) this.#kinds.set(type, 'PCMA');
    for (const type of remote.telephoneEvents) this.#kinds.set(type, 'event');
    // The old hold (0.0.0.0) names no address: where the far end was heard stays good. An offer that changes nothing (a
    // session timer's refresh) is no reason to open the lock.
    if (!remote.addressWithheld) this.#source.signalRtcp(remote.rtcp.address, remote.rtcp.port);
    if (!remote.addressWithheld && (changed || hasMoved(before, remote))) {
      this.#source.signal(remote.address, remote.port);
      this.#silence.restart();
      this.#connectOrDisconnect();
    }
    this.#quietFrames = 0;
    if (phase === 'answer') {
      this.#answered = true;
      this.#envelope ??= new EnvelopeRecorder();
    }
  }

  obey(command: Exclude<MediaCommand, { kind: 'stream' | 'askEnvelope' }>): void {
    switch (command.kind) {
      case 'detect':
        this.startDetection(command.settings, command.plans);
        break;
      case 'stopDetection':
        this.stopDetection(command.reason);
        break;
      case 'stopStream':
        this.stopStream(command.reason);
        break;
      case 'gateStream':
        this.streaming.gate(command.isGated);
        break;
      case 'play':
        this.#player.play(command.playback);
        break;
      case 'press':
        this.#keys.press(command.keys);
        break;
      case 'stopPlayback':
        this.stopPlayback();
        break;
      case 'tellDigit':
        this.streaming.tellDigit(command.digit);
        break;
      case 'tellTransferFailed':
        this.streaming.tellTransferFailed(command.failure);
        break;
      default:
        assertNever(command);
    }
  }

  /** What was heard until now was ringback. */
  startDetection(settings: AmdSettings, plans?: CallPlans): void {
    if (this.#detection !== undefined) return;
    this.#settings = settings;
    this.#jitter ??= new JitterBuffer(this.#counts.jitter);
    if (plans !== undefined) this.#startPlans(settings, plans);
    this.#detect(this.#settings);
  }

  #startPlans(settings: AmdSettings, plans: CallPlans): void {
    const waitForBeepMs = plans.voicemail?.waitForBeepMs;
    if (waitForBeepMs !== undefined) this.#settings = { ...settings, waitForBeepMs };
    this.#plans = new PlannedCall(plans, {
      play: (playback) => this.#player.play(playback),
      stopPlayback: () => this.stopPlayback(),
      muteBot: (isMuted) => this.streaming.mute(isMuted),
      stopStream: (reason) => this.stopStream(reason),
      forgetSpeaker: () => this.#detection?.ear?.forgetSpeaker(),
      stopDetection: (reason) => this.stopDetection(reason),
      detectAnew: () => this.#detectAnew(),
      report: (report) => this.#sink.tell({ kind: 'plan', report }),
    });
  }

  #detect(settings: AmdSettings): void {
    this.#hasStated = false;
    this.#detection = new Detection(this.#options.createDetector, settings, {
      onAmd: (events) => this.#tellAmd(events),
      onDetectorError: (error) => this.#sink.onDetectorError(error),
    });
    this.#releaseWhenDone();
  }

  /** A person who comes after a call screening takes as long as it takes. */
  #detectAnew(): void {
    if (this.#settings === undefined) return;
    this.#round += 1;
    this.#roundStartFrames = this.#heardFrames;
    this.#detect(settingsOfLaterRound(this.#settings));
  }

  stopDetection(reason: string): void {
    this.#detection?.stop(reason);
    this.#releaseWhenDone();
  }

  /** A plan has the call: what the bot does does not end it. */
  get isPlanned(): boolean {
    return this.#plans?.hasCall === true;
  }

  /** Two people talk here from now on. */
  abandonPlans(): void {
    this.#plans?.abandon();
    this.#plans = undefined;
    this.#releaseWhenDone();
  }

  /** Heard wherever there would be silence. */
  ring(isRinging: boolean): void {
    this.#player.ring(isRinging);
  }

  /** What is heard here goes on to `listener`, in place of all that is said to it. `onFirst`: the first packet of it has left. */
  relayTo(listener: RtpSession, onFirst: () => void): void {
    this.#listener = listener;
    listener.#relay = new RtpRelay(listener.#sender, onFirst);
  }

  stopRelay(): void {
    const listener = this.#listener;
    if (listener !== undefined) listener.#relay = undefined;
    this.#listener = undefined;
  }

  stopStream(reason: string): void {
    this.streaming.stop(reason);
    this.#releaseWhenDone();
  }

  stopPlayback(): void {
    this.#keys.stop();
    this.#player.stop();
    this.streaming.clear();
  }

  /** From the answer on; undefined: there was none. */
  envelope(): AudioEnvelope | undefined {
    return this.#envelope?.read();
  }

  receive(packet: Uint8Array, address: string, port: number): void {
    if (!this.#isTheirs(packet, address, port)) {
      this.receiveRtcp(packet, address, port);
      return;
    }
    const { header } = this.#options.scratch;
    this.#counts.received += 1;
    this.#quietFrames = 0;
    const kind = this.#kinds.get(header.payloadType);
    if (kind === undefined || kind === 'noise') return;
    const listener = this.#listener;
    if (listener !== undefined) listener.#passOn(packet, header, kind);
    // Ringback and announcements before the answer are no person's.
    if (!this.#answered) return;
    const { payloadStart, payloadEnd, timestamp } = header;
    if (kind === 'event') {
      this.#dtmf.receive(packet, payloadStart, payloadEnd, timestamp);
      return;
    }
    this.#envelope?.hear(packet, payloadStart, payloadEnd, kind);
    const decode = decodeTable[kind];
    this.#jitter?.put(packet, payloadStart, payloadEnd, header.sequence, timestamp, decode);
  }

  /** RTCP serves only as a sign of life: some far ends send no audio while their person is silent. */
  receiveRtcp(datagram: Uint8Array, address: string, port: number): void {
    const sender = readRtcpSender(datagram);
    if (sender !== undefined && this.#source.reportsFrom(address, port, sender)) {
      this.#quietFrames = 0;
    } else this.#counts.discarded += 1;
  }

  /** ICMP says that what we sent did not arrive. No end of the call: its BYE may be on its way, or another address. */
  unreachable(): void {
    this.#source.markUnreachable();
    this.#connectOrDisconnect();
  }

  /** 20 ms have passed. `transmit` is false for the ticks of a late clock that would only make a burst. */
  tick(transmit: boolean): void {
    this.#source.tick();
    this.#connectOrDisconnect();
    this.#dtmf.tick();
    this.#ssrc.tick();
    this.#sender.tick();
    // First: what a plan wants to be played after a beep is sent in the same tick.
    this.#listen(transmit);
    this.#relay?.tick();
    this.#envelope?.tick();
    if (this.#answered && this.#remote !== undefined) {
      this.#transmit(this.#remote, transmit);
      this.#watchActivity(this.#remote);
    }
    this.streaming.tick();
  }

  #listen(isInTime: boolean): void {
    const { isOn } = this.streaming;
    if (this.#answered && isOn) this.#jitter ??= new JitterBuffer(this.#counts.jitter);
    if (this.#jitter === undefined) return;
    if (!isInTime) this.#counts.framesLate += 1;
    const { frame, mulaw, silence } = this.#options.scratch;
    const received = this.#jitter.take(frame);
    if (isOn) {
      encodeMulawFrame(frame, mulaw);
      this.streaming.hear(mulaw, silence);
    }
    this.#heardFrames += 1;
    this.#detection?.push(frame, !received, this.#sentPower);
    this.#plans?.tick(this.#detection?.ear);
    this.#releaseWhenDone();
  }

  #tellAmd(ofRound: readonly AmdEvent[]): void {
    const events = this.#round === 1 ? ofRound : ofRound.map((event) => this.#inRound(event));
    for (const amd of events) this.#sink.tell({ kind: 'amd', amd });
    for (const event of events) {
      // What was stated stands: a detection that fails after it only stops, as the call states it too.
      if (event.event !== 'amd_error' || !this.#hasStated) this.streaming.tellAmd(event);
      this.#hasStated = true;
      this.#plans?.told(event);
    }
  }

  /** A detector's clock begins with its round; the call's with the answer. */
  #inRound(event: AmdEvent): AmdEvent {
    const elapsedMs = event.elapsedMs + this.#roundStartFrames * tickMs;
    return { ...event, elapsedMs, round: this.#round };
  }

  #connectOrDisconnect(): void {
    const { settled, port, address } = this.#source;
    if (settled === this.#connected) return;
    this.#connected = settled;
    if (settled) this.#sink.connect(port, address);
    else this.#sink.disconnect();
  }

  #isTheirs(packet: Uint8Array, address: string, port: number): boolean {
    const { header } = this.#options.scratch;
    if (!readRtp(packet, header) || !this.#kinds.has(header.payloadType)) return false;
    if (!this.#source.accept(address, port, header.ssrc, header.sequence)) return false;
    return this.#ssrc.accept(header.ssrc, header.sequence);
  }

  #transmit(remote: RemoteMedia, isInTime: boolean): void {
    const isRelayed = this.#relay?.isFlowing === true;
    const key = remote.weSend && isInTime ? this.#keys.next(remote, isRelayed) : undefined;
    if (key !== undefined) this.#send(key);
    if (isRelayed || key !== undefined) {
      // Another leg speaks, or a key is pressed: what the bot says meanwhile is over then.
      this.#sentPower = 0;
      this.#sender.skip();
      this.#silence.restart();
      this.#player.pass();
    } else this.#speak(remote, isInTime);
    this.streaming.returnMarks();
  }

  #speak(remote: RemoteMedia, isInTime: boolean): void {
    const isSilent = remote.weSend && this.#player.isUnused;
    if (!this.#silence.isDue(isSilent)) {
      this.#sentPower = 0;
      this.#sender.skip();
      return;
    }
    if (remote.weSend && isInTime) {
      const listens = this.#plans !== undefined && this.#player.isPlaying;
      const packet = this.#sender.next(remote, this.#player);
      this.#sentPower = listens ? powerOf(packet.subarray(rtpHeaderBytes), remote.codec) : 0;
      this.#envelope?.say(packet, rtpHeaderBytes, remote.codec);
      this.#send(packet);
      return;
    }
    this.#sender.skip();
    // What a late clock held up is said later.
    if (remote.weSend) this.#counts.unsent += 1;
    else this.#player.pass();
  }

  #send(packet: Uint8Array): void {
    this.#counts.sent += 1;
    this.#sink.send(packet, this.#source.port, this.#source.address);
  }

  /** A packet of the other end of the bridge. */
  #passOn(packet: Uint8Array, header: RtpHeader, kind: Exclude<PacketKind, 'noise'>): void {
    const [remote, relay] = [this.#remote, this.#relay];
    if (relay === undefined || remote?.weSend !== true || !this.#answered) return;
    const relayed =
      kind === 'event'
        ? relay.event(packet, header, remote)
        : relay.audio(packet, header, kind, remote);
    if (relayed === undefined) return;
    if (kind !== 'event') this.#envelope?.say(relayed, rtpHeaderBytes, remote.codec);
    this.#send(relayed);
  }

  #watchActivity(remote: RemoteMedia): void {
    // On hold either side may rightly be silent for as long as it likes.
    if (!remote.weSend || !remote.theySend) return;
    this.#quietFrames += 1;
    if (this.#quietFrames === this.#options.inactivityFrames) this.#sink.tell({ kind: 'inactive' });
  }

  #releaseWhenDone(): void {
    if (this.#plans?.isOver === true) this.#plans = undefined;
    if (this.#plans !== undefined || this.#detection?.done !== true) return;
    // A plan may have listened on until now.
    this.#detection.stop('plans-over');
    if (!this.streaming.isOn) this.#jitter = undefined;
  }
}
