// Runs one call's plans. We pass them frames, detection events and playback reports, and carry out
// the actions that they return.

import type { AmdEvent } from '../../calls/detection/amd-event.ts';
import type { DetectionStop } from '../../calls/detection/amd-reasons.ts';
import type { CallPlans, PlanName, PlanReport } from '../../calls/plans/plans.ts';
import type { Playback, PlaybackReport } from '../../calls/playback/playback.ts';
import type { StreamStop } from '../../calls/stream/stream-reasons.ts';
import type { HeardOnLine } from '../detector-port.ts';
import type { PlanAction } from './plan-port.ts';
import { ScreeningPlan } from './screening-plan.ts';
import { VoicemailPlan } from './voicemail-plan.ts';

/** The actions that plans can perform in their session. */
export type PlanHost = {
  play(playback: Playback): void;
  stopPlayback(): void;
  muteBot(isMuted: boolean): void;
  stopStream(reason: StreamStop): void;
  forgetSpeaker(): void;
  stopDetection(reason: DetectionStop): void;
  restartDetection(): void;
  report(report: PlanReport): void;
};

export class PlannedCall {
  readonly #host: PlanHost;
  readonly #voicemail: VoicemailPlan | undefined;
  readonly #screening: ScreeningPlan | undefined;
  /** True while a plan's sound is queued or playing. */
  #isPlaying = false;
  /** True once any part of the voicemail message has been sent. */
  #hasLeftMessage = false;
  /** The plan that controls the call, as last reported. */
  #holder: PlanName | undefined;
  #isDone = false;

  constructor(plans: CallPlans, host: PlanHost) {
    this.#host = host;
    if (plans.screening !== undefined) this.#screening = new ScreeningPlan(plans.screening);
    if (plans.voicemail !== undefined) this.#voicemail = new VoicemailPlan(plans.voicemail);
  }

  /** True while a plan controls the call. During that time, the bot can't end the call. */
  get controlsCall(): boolean {
    return this.#currentHolder() !== undefined;
  }

  /** True once all plans have finished. Until then, they need frames. */
  get isOver(): boolean {
    return this.#voicemail?.isOver !== false && this.#screening?.isOver !== false;
  }

  /** Handles the next detection event. */
  onAmd(event: AmdEvent): void {
    const wasScreened = this.#isScreened();
    this.#performAll(this.#screening?.onAmd(event));
    // Events about a screener aren't passed to the voicemail plan. The exception is the end of
    // detection, which means that nobody else will answer after the screener.
    const isLast = event.event === 'amd_stopped' && this.#screening?.isOver === true;
    if (isLast || (!wasScreened && !this.#isScreened()))
      this.#performAll(this.#voicemail?.onAmd(event));
    this.#reportProgress();
  }

  onPlayback(report: PlaybackReport): void {
    if (report.kind === 'started' && report.source === 'voicemail') this.#hasLeftMessage = true;
    if (report.kind === 'finished' && report.source !== 'command') this.#isPlaying = false;
  }

  /**
   * Handles the next 20 ms. If detection found any events in them, call `onAmd` with those first.
   */
  tick(heard: HeardOnLine | undefined): void {
    const isPlaying = this.#isPlaying;
    this.#performAll(this.#screening?.advance({ heard, isPlaying }));
    this.#performAll(this.#voicemail?.advance({ heard, isPlaying }));
    this.#reportProgress();
  }

  /**
   * Ends all plans. From here on two people are talking to each other, and they must not hear a
   * plan's sounds.
   */
  abandon(): void {
    if (this.#isPlaying) this.#host.stopPlayback();
    if (this.#holder !== undefined) {
      this.#holder = undefined;
      this.#host.muteBot(false);
      this.#host.report({ kind: 'held', by: undefined });
    }
    this.#reportDone();
  }

  #currentHolder(): PlanName | undefined {
    if (this.#voicemail?.controlsCall === true) return 'voicemail';
    return this.#isScreened() ? 'screening' : undefined;
  }

  #reportProgress(): void {
    const by = this.#currentHolder();
    if (by !== this.#holder) this.#host.report({ kind: 'held', by });
    this.#holder = by;
    if (this.isOver) this.#reportDone();
  }

  #reportDone(): void {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#host.report({ kind: 'done' });
  }

  #isScreened(): boolean {
    return this.#screening?.controlsCall === true;
  }

  #performAll(actions: readonly PlanAction[] = []): void {
    for (const action of actions) this.#perform(action);
  }

  #perform(action: PlanAction): void {
    switch (action.do) {
      case 'play':
        this.#host.stopPlayback();
        this.#isPlaying = true;
        this.#host.play(action.playback);
        break;
      case 'stopPlaying':
        this.#host.stopPlayback();
        break;
      case 'muteBot':
        this.#host.muteBot(action.isMuted);
        break;
      case 'stopStream':
        this.#host.stopStream('voicemail');
        break;
      case 'forgetSpeaker':
        this.#host.forgetSpeaker();
        break;
      case 'stopDetection':
        this.#host.stopDetection(action.reason);
        break;
      case 'detect':
        this.#host.restartDetection();
        break;
      case 'report':
        this.#host.report(this.#correctOutcome(action.report));
        break;
    }
  }

  /**
   * Changes the outcome `voicemail-left` to `machine` if we haven't sent a single packet of the
   * message. That happens if the worker stalls and a voice stops the message before its first
   * packet.
   */
  #correctOutcome(report: PlanReport): PlanReport {
    const claimsMessage = report.kind === 'over' && report.outcome === 'voicemail-left';
    return claimsMessage && !this.#hasLeftMessage ? { kind: 'over', outcome: 'machine' } : report;
  }
}
