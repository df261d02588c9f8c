// One call leg's audio. The owner calls `receive` with every packet, and `tick` every 20 ms. There
// are no sockets or timers in here, which means that tests can drive the session with their own
// clock. `Reception` accepts packets and passes frames and keys to `Listeners`, while
// `Transmission` sends our audio.

import { type AmdSettings, assertNever } from '../../calls/call-types.ts';
import type { AudioEnvelope } from '../../calls/capture/capture.ts';
import type { DetectionStop } from '../../calls/detection/amd-reasons.ts';
import type { CallQuality } from '../../calls/life/call-quality.ts';
import type { MediaCommand } from '../../calls/media.ts';
import type { CallPlans } from '../../calls/plans/plans.ts';
import { EnvelopeRecorder } from '../envelope-recorder.ts';
import { tickMs } from '../playout/playout.ts';
import { RtcpSession } from '../rtcp/rtcp-session.ts';
import type { RemoteMedia } from '../sdp.ts';
import { SessionRecording } from '../session-recording.ts';
import type { SessionStream } from '../session-stream.ts';
import { Listeners } from './listeners.ts';
import { Reception } from './reception.ts';
import { RemoteSource } from './remote-source.ts';
import type { RtpSessionOptions, RtpSessionSink } from './rtp-session-ports.ts';
import { Transmission } from './transmission.ts';

const defaultClocks = {
  now: () => performance.timeOrigin + performance.now(),
  sleptSince: () => undefined,
  random: Math.random,
};

export class RtpSession {
  readonly #reception: Reception;
  readonly #listeners: Listeners;
  readonly #transmission: Transmission;
  readonly #recording: SessionRecording;
  readonly #rtcp: RtcpSession;
  readonly #source = new RemoteSource();
  #remote: RemoteMedia | undefined;
  #envelope: EnvelopeRecorder | undefined;

  constructor(options: RtpSessionOptions, sink: RtpSessionSink) {
    const source = this.#source;
    this.#rtcp = new RtcpSession({ ...defaultClocks, tickMs, ...options }, (packet) =>
      this.#sendReport(packet, sink),
    );
    this.#recording = new SessionRecording(
      options.createRecorder,
      (report) => sink.report({ kind: 'recording', report }),
      (error) => sink.onRecorderError(error),
    );
    this.#transmission = new Transmission(options, this.#recording, {
      send: (packet) => sink.send(packet, source.port, source.address),
      onSent: (bytes) => this.#rtcp.noteSent(bytes),
      onPlayback: (report) => this.#listeners.onPlayback(report),
      onBotSpoke: () => sink.report({ kind: 'botSpoke' }),
      onKeysSent: (report) => sink.report({ kind: 'keysSent', report }),
    });
    this.#listeners = new Listeners(options, this.#transmission, this.#recording, sink);
    this.#reception = new Reception(options, { source, rtcp: this.#rtcp }, this.#listeners, sink);
  }

  get streaming(): SessionStream {
    return this.#listeners.streaming;
  }

  /** True while a plan controls the call. During that time, the bot can't end the call. */
  get isPlanInControl(): boolean {
    return this.#listeners.isPlanInControl;
  }

  /** Applies the far end's description from early media, the answer, or a later re-offer. */
  applyRemote(remote: RemoteMedia, phase: 'early' | 'answer'): void {
    this.#remote = remote;
    if (phase === 'answer') this.#envelope ??= new EnvelopeRecorder();
    const mayHaveMoved = this.#reception.apply(remote, this.#envelope);
    if (this.#envelope !== undefined) {
      this.#transmission.apply(remote, this.#envelope, mayHaveMoved);
    }
  }

  receive(packet: Uint8Array, address: string, port: number): void {
    this.#reception.receive(packet, address, port);
  }

  receiveRtcp(datagram: Uint8Array, address: string, port: number): void {
    this.#reception.receiveRtcp(datagram, address, port);
  }

  unreachable(): void {
    this.#reception.unreachable();
  }

  /**
   * Advances the session by 20 ms. `isInTime` is false if the clock is so late that packets sent in
   * this tick would only add to a burst.
   */
  tick(isInTime: boolean): void {
    if (this.#isAnswered) this.#recording.begin(this.#transmission.timestamp);
    // Run the reception first, so that a plan's reply to a beep goes out in the same tick.
    this.#reception.tick(isInTime);
    this.#transmission.tick(isInTime);
    this.#recording.tick();
    if (this.#isAnswered) this.#rtcp.tick(this.#transmission.timestamp);
    this.streaming.tick();
  }

  execute(
    command: Exclude<MediaCommand, { kind: 'stream' | 'requestEnvelope' | 'requestQuality' }>,
  ): void {
    switch (command.kind) {
      case 'detect':
        this.startDetection(command.settings, command.plans);
        break;
      case 'stopDetection':
        this.stopDetection(command.reason);
        break;
      case 'stopStream':
        this.streaming.stop(command.reason);
        break;
      case 'gateStream':
        this.streaming.gate(command.isGated);
        break;
      case 'play':
        // Nobody may talk over an announcement, and the call must not end before it has finished.
        if (command.playback.source === 'announcement') this.abandonPlans();
        this.#transmission.player.play(command.playback);
        break;
      case 'press':
        this.#transmission.press(command.keys);
        break;
      case 'stopPlayback':
        this.#transmission.stop(command.isEnd === true);
        break;
      case 'sendDigit':
        this.#recording.beginKey(0);
        this.#recording.endKey();
        this.streaming.sendDigit(command.digit);
        break;
      case 'reportTransferFailure':
        this.streaming.sendTransferFailed(command.failure);
        break;
      case 'record':
        this.#recording.execute(command);
        break;
      default:
        assertNever(command);
    }
  }

  startDetection(settings: AmdSettings, plans?: CallPlans): void {
    this.#listeners.startDetection(settings, plans);
  }

  stopDetection(reason: DetectionStop): void {
    this.#listeners.stopDetection(reason);
  }

  stopPlayback(): void {
    this.#transmission.stop(true);
  }

  /** Ends the recording, and sends the last report. */
  end(): void {
    this.#recording.end();
    if (this.#isAnswered) this.#rtcp.end(this.#transmission.timestamp);
  }

  /** Ends the recording, because the session has failed. */
  failRecording(): void {
    this.#recording.fail();
  }

  /** @returns how the call sounds. Undefined if the far end hasn't sent any audio. */
  quality(): CallQuality | undefined {
    return this.#rtcp.quality(this.#reception.playout);
  }

  get #isAnswered(): boolean {
    return this.#envelope !== undefined;
  }

  #sendReport(packet: Uint8Array, sink: RtpSessionSink): void {
    if (this.#remote === undefined || this.#remote.addressWithheld) return;
    const { isMultiplexed = false } = this.#remote.rtcp;
    const { address, port } = isMultiplexed ? this.#source : this.#source.rtcpTarget;
    if (port === 0) return;
    sink.sendRtcp(this.#transmission.protectRtcp(packet), port, address, isMultiplexed);
  }

  /** @returns the loudness of both sides since the answer. Undefined before the answer. */
  envelope(): AudioEnvelope | undefined {
    return this.#envelope?.read();
  }

  /**
   * Ends all plans. From here on two people are talking to each other, so plans must stay silent.
   */
  abandonPlans(): void {
    this.#listeners.abandonPlans();
  }

  /** Starts or stops ringback, which plays whenever there's no other audio. */
  ring(isRinging: boolean): void {
    this.#transmission.player.ring(isRinging);
  }

  /**
   * Relays the packets received here to `partner`, which sends them instead of our own audio.
   * `onFirst` is called when the first audio packet is relayed.
   */
  relayTo(partner: RtpSession, onFirst: () => void): void {
    this.#reception.relayTo(partner.#transmission, onFirst);
  }

  stopRelay(): void {
    this.#reception.stopRelay();
  }
}
