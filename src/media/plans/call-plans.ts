// The plans of one call. Passes frames, events and reports of sounds to them, and carries out their
// actions in the session.

import type { AmdEvent } from '../../calls/detection/amd-event.ts';
import type { CallPlans, PlanName, PlanReport } from '../../calls/plans/plans.ts';
import type { Playback, PlaybackReport } from '../../calls/playback/playback.ts';
import type { HeardOnLine } from '../detector-port.ts';
import type { PlanAction } from './plan-port.ts';
import { ScreeningPlan } from './screening-plan.ts';
import { VoicemailPlan } from './voicemail-plan.ts';

/** What the plans may do in their session. */
export type PlanHost = {
  play(playback: Playback): void;
  stopPlayback(): void;
  muteBot(isMuted: boolean): void;
  stopStream(reason: string): void;
  forgetSpeaker(): void;
  stopDetection(reason: string): void;
  detectAnew(): void;
  report(report: PlanReport): void;
};

export class PlannedCall {
  readonly #host: PlanHost;
  readonly #voicemail: VoicemailPlan | undefined;
  readonly #screening: ScreeningPlan | undefined;
  /** Whether a plan's sound waits or plays. */
  #isPlaying = false;
  /** Whether any of the voicemail message was sent. */
  #hasLeftMessage = false;
  /** The plan that has the call, as reported last. */
  #holder: PlanName | undefined;
  #isDone = false;

  constructor(plans: CallPlans, host: PlanHost) {
    this.#host = host;
    if (plans.screening !== undefined) this.#screening = new ScreeningPlan(plans.screening);
    if (plans.voicemail !== undefined) this.#voicemail = new VoicemailPlan(plans.voicemail);
  }

  /** Whether a plan has the call. While one has it, the bot cannot end the call. */
  get hasCall(): boolean {
    return this.#holderNow() !== undefined;
  }

  /** Whether all plans are over. Until then they need frames. */
  get isOver(): boolean {
    return this.#voicemail?.isOver !== false && this.#screening?.isOver !== false;
  }

  /** Takes the next event of detection. */
  onAmd(event: AmdEvent): void {
    const wasScreened = this.#isScreened();
    this.#do(this.#screening?.onAmd(event));
    // The voicemail plan gets no events of a screener. Only the end of detection concerns both
    // plans: after it, no other voice follows the screener.
    const isLast = event.event === 'amd_stopped' && this.#screening?.isOver === true;
    if (isLast || (!wasScreened && !this.#isScreened())) this.#do(this.#voicemail?.onAmd(event));
    this.#reportProgress();
  }

  played(report: PlaybackReport): void {
    if (report.kind === 'started' && report.source === 'voicemail') this.#hasLeftMessage = true;
    if (report.kind === 'finished' && report.source !== 'command') this.#isPlaying = false;
  }

  /** Takes what was heard in the next 20 ms. The events that detection found in them come first. */
  tick(heard: HeardOnLine | undefined): void {
    const isPlaying = this.#isPlaying;
    this.#do(this.#screening?.advance({ heard, isPlaying }));
    this.#do(this.#voicemail?.advance({ heard, isPlaying }));
    this.#reportProgress();
  }

  /** Ends all plans: two people talk from now on, and must hear nothing of a plan. */
  abandon(): void {
    if (this.#isPlaying) this.#host.stopPlayback();
    if (this.#holder !== undefined) {
      this.#holder = undefined;
      this.#host.muteBot(false);
      this.#host.report({ kind: 'held', by: undefined });
    }
    this.#reportDone();
  }

  #holderNow(): PlanName | undefined {
    if (this.#voicemail?.hasCall === true) return 'voicemail';
    return this.#isScreened() ? 'screening' : undefined;
  }

  #reportProgress(): void {
    const by = this.#holderNow();
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
    return this.#screening?.hasCall === true;
  }

  #do(actions: readonly PlanAction[] = []): void {
    for (const action of actions) this.#doOne(action);
  }

  #doOne(action: PlanAction): void {
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
        this.#host.detectAnew();
        break;
      case 'report':
        this.#host.report(this.#asPlayed(action.report));
        break;
    }
  }

  /**
   * Corrects the outcome `voicemail-left` if no packet of the message was sent. After a stall of
   * the worker, a voice may stop a message before its first packet.
   */
  #asPlayed(report: PlanReport): PlanReport {
    const claimsMessage = report.kind === 'over' && report.outcome === 'voicemail-left';
    return claimsMessage && !this.#hasLeftMessage ? { kind: 'over', outcome: 'machine' } : report;
  }
}
