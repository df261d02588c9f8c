// Everything that listens to a call: detection, in one or more rounds, the plans that depend on
// detection, and the call's bot. If a plan plays a sound, it does so through the transmission.

import type { AmdSettings } from '../../calls/call-types.ts';
import type { AmdEvent } from '../../calls/detection/amd-event.ts';
import type { DetectionStop } from '../../calls/detection/amd-reasons.ts';
import type { CallPlans } from '../../calls/plans/plans.ts';
import type { PlaybackReport } from '../../calls/playback/playback.ts';
import { Detection } from '../detection.ts';
import { encodeMulawFrame } from '../g711.ts';
import { PlannedCall } from '../plans/call-plans.ts';
import { tickMs } from '../playout/playout.ts';
import type { SessionRecording } from '../session-recording.ts';
import { SessionStream } from '../session-stream.ts';
import type { KeyListener } from './dtmf-receiver.ts';
import type { RtpSessionOptions, RtpSessionSink } from './rtp-session-ports.ts';
import type { Transmission } from './transmission.ts';

/** Rounds that follow a screening may take this long. Call screeners give up in half that time. */
const laterRoundTimeoutMs = 60_000;

type ListenersSink = Pick<RtpSessionSink, 'report' | 'onDetectorError'>;

export class Listeners implements KeyListener {
  readonly #options: RtpSessionOptions;
  readonly #transmission: Transmission;
  readonly #recording: SessionRecording;
  readonly #sink: ListenersSink;
  readonly streaming: SessionStream;
  #settings: AmdSettings | undefined;
  #detection: Detection | undefined;
  #plans: PlannedCall | undefined;
  /** Number of the detection round, starting at 1. Plans may start further rounds. */
  #round = 1;
  #roundStartFrames = 0;
  #heardFrames = 0;
  /** True once detection has reported anything in this round. */
  #hasReported = false;

  constructor(
    options: RtpSessionOptions,
    transmission: Transmission,
    recording: SessionRecording,
    sink: ListenersSink,
  ) {
    this.#options = options;
    this.#transmission = transmission;
    this.#recording = recording;
    this.#sink = sink;
    this.streaming = new SessionStream(transmission.player);
  }

  /** True while any listener needs frames. */
  get needFrames(): boolean {
    const isDetecting = this.#detection?.done === false || this.#plans !== undefined;
    return isDetecting || this.streaming.isActive || this.#recording.isActive;
  }

  /** True while a plan controls the call. During that time, the bot can't end the call. */
  get isPlanInControl(): boolean {
    return this.#plans?.controlsCall === true;
  }

  /**
   * Starts detection. Call this when the call is answered, because anything before that is
   * ringback.
   */
  startDetection(settings: AmdSettings, plans?: CallPlans): void {
    if (this.#detection !== undefined) return;
    this.#settings = settings;
    if (plans !== undefined) this.#startPlans(settings, plans);
    this.#detect(this.#settings);
  }

  stopDetection(reason: DetectionStop): void {
    this.#detection?.stop(reason);
    this.#releaseWhenDone();
  }

  /**
   * Ends all plans. From here on two people are talking to each other, so plans must stay silent.
   */
  abandonPlans(): void {
    this.#plans?.abandon();
    this.#plans = undefined;
    this.#releaseWhenDone();
  }

  /**
   * Passes the far end's next 20 ms to the listeners. A bot hears losses concealed, and a recording
   * contains them so. Detection gets `arrived`, with silence in their place, because it has rules
   * for lost frames: it would find fewer beeps in audio that is partly made up (src/amd/README.md).
   * `unheardMs` is the audio that went unheard since the last frame because the clock was late.
   */
  hear(heard: Int16Array, arrived: Int16Array, isReceived: boolean, unheardMs: number): void {
    if (this.streaming.isActive || this.#recording.isActive) {
      const { mulaw, silence } = this.#options.scratch;
      encodeMulawFrame(heard, mulaw);
      this.#recording.hear(mulaw);
      this.streaming.hear(mulaw, silence);
    }
    this.#heardFrames += 1;
    const { soundPower } = this.#transmission;
    this.#detection?.push(arrived, !isReceived, soundPower, heard, unheardMs);
    this.#plans?.tick(this.#detection?.ear);
    this.#releaseWhenDone();
  }

  onKeyBegin(agoMs: number): void {
    this.#recording.beginKey(agoMs);
  }

  onKeyEnd(): void {
    this.#recording.endKey();
  }

  /** Handles a key that the far end pressed. */
  onKey(digit: string, durationMs: number): void {
    this.#sink.report({ kind: 'dtmf', digit, durationMs });
    this.streaming.sendDigit(digit);
  }

  /** Handles the start or end of a sound. */
  onPlayback(report: PlaybackReport): void {
    this.#sink.report({ kind: 'playback', report });
    this.#plans?.onPlayback(report);
  }

  #startPlans(settings: AmdSettings, plans: CallPlans): void {
    const waitForBeepMs = plans.voicemail?.waitForBeepMs;
    if (waitForBeepMs !== undefined) this.#settings = { ...settings, waitForBeepMs };
    this.#plans = new PlannedCall(plans, {
      play: (playback) => this.#transmission.player.play(playback),
      stopPlayback: () => this.#transmission.stop(false),
      muteBot: (isMuted) => this.streaming.mute(isMuted),
      stopStream: (reason) => this.streaming.stop(reason),
      forgetSpeaker: () => this.#detection?.ear?.forgetSpeaker(),
      stopDetection: (reason) => this.stopDetection(reason),
      restartDetection: () => this.#restartDetection(),
      report: (report) => this.#sink.report({ kind: 'plan', report }),
    });
  }

  #detect(settings: AmdSettings): void {
    this.#hasReported = false;
    this.#detection = new Detection(this.#options.createDetector, settings, {
      onAmd: (events) => this.#reportAmd(events),
      onDetectorError: (error) => this.#sink.onDetectorError(error),
    });
    this.#releaseWhenDone();
  }

  #restartDetection(): void {
    if (this.#settings === undefined) return;
    this.#round += 1;
    this.#roundStartFrames = this.#heardFrames;
    this.#detect(laterRoundSettings(this.#settings));
  }

  #reportAmd(roundEvents: readonly AmdEvent[]): void {
    const events =
      this.#round === 1 ? roundEvents : roundEvents.map((event) => this.#inRound(event));
    for (const amd of events) this.#sink.report({ kind: 'amd', amd });
    for (const event of events) {
      // Once we've reported a verdict, we don't take it back. If detection fails after that, the
      // bot gets only `amd_stopped`, not `amd_error`.
      if (event.event !== 'amd_error' || !this.#hasReported) this.streaming.sendAmd(event);
      this.#hasReported = true;
      this.#plans?.onAmd(event);
    }
  }

  /**
   * Adds the round to an event, and converts the event's time. The detector's clock starts with the
   * round, whereas the call's clock starts at the answer.
   */
  #inRound(event: AmdEvent): AmdEvent {
    const elapsedMs = event.elapsedMs + this.#roundStartFrames * tickMs;
    return { ...event, elapsedMs, round: this.#round };
  }

  /**
   * Releases the detector when it's done. If plans are still active, we keep the detector even
   * after `amd_stopped`, because they need its ear.
   */
  #releaseWhenDone(): void {
    if (this.#plans?.isOver === true) this.#plans = undefined;
    if (this.#plans !== undefined || this.#detection?.done !== true) return;
    this.#detection.stop('plans-over');
  }
}

/**
 * Returns the settings for later rounds. They use longer timers, because someone who screens calls
 * looks at the phone first and then decides.
 */
function laterRoundSettings(settings: AmdSettings): AmdSettings {
  const { timers } = settings;
  return {
    ...settings,
    timers: {
      ...timers,
      noSpeechTimeoutMs: Math.max(timers.noSpeechTimeoutMs, laterRoundTimeoutMs),
      decisionTimeoutMs: Math.max(timers.decisionTimeoutMs, laterRoundTimeoutMs),
      toneTimeoutMs: Math.max(timers.toneTimeoutMs, laterRoundTimeoutMs),
    },
  };
}
