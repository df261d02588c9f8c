// The plans of one call, between its session and them: tells them of frames, events and sounds, and does what they want.

import type { AmdEvent } from '../../calls/detection/amd-event.ts';
import type { CallPlans, PlanName, PlanReport } from '../../calls/plans/plans.ts';
import type { Playback, PlaybackReport } from '../../calls/playback/playback.ts';
import type { HeardOnLine } from '../detector-port.ts';
import type { PlanAction } from './plan-port.ts';
import { ScreeningPlan } from './screening-plan.ts';
import { VoicemailPlan } from './voicemail-plan.ts';

/** Of the session. */
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
  /** A sound of a plan. */
  #isPlaying = false;
  /** Some of the message went out. */
  #hasLeftMessage = false;
  /** As it was told. */
  #holder: PlanName | undefined;
  #isDone = false;

  constructor(plans: CallPlans, host: PlanHost) {
    this.#host = host;
    if (plans.screening !== undefined) this.#screening = new ScreeningPlan(plans.screening);
    if (plans.voicemail !== undefined) this.#voicemail = new VoicemailPlan(plans.voicemail);
  }

  /** What a bot does is no end of the call now. */
  get hasCall(): boolean {
    return this.#holderNow() !== undefined;
  }

  /** Frames are wanted. */
  get isOver(): boolean {
    return this.#voicemail?.isOver !== false && this.#screening?.isOver !== false;
  }

  told(event: AmdEvent): void {
    const wasScreened = this.#isScreened();
    this.#do(this.#screening?.told(event));
    // What a screener says is for its own plan; that no voice follows is for both.
    const isLast = event.event === 'amd_stopped' && this.#screening?.isOver === true;
    if (isLast || (!wasScreened && !this.#isScreened())) this.#do(this.#voicemail?.told(event));
    this.#tellProgress();
  }

  played(report: PlaybackReport): void {
    if (report.kind === 'started' && report.source === 'voicemail') this.#hasLeftMessage = true;
    if (report.kind === 'finished' && report.source !== 'command') this.#isPlaying = false;
  }

  /** What was heard in the next 20 ms, after what detection told of them. */
  tick(heard: HeardOnLine | undefined): void {
    const isPlaying = this.#isPlaying;
    this.#do(this.#screening?.advance({ heard, isPlaying }));
    this.#do(this.#voicemail?.advance({ heard, isPlaying }));
    this.#tellProgress();
  }

  /** Two people talk from now on: nothing of a plan is heard between them. */
  abandon(): void {
    if (this.#isPlaying) this.#host.stopPlayback();
    if (this.#holder !== undefined) {
      this.#holder = undefined;
      this.#host.muteBot(false);
      this.#host.report({ kind: 'held', by: undefined });
    }
    this.#tellDone();
  }

  #holderNow(): PlanName | undefined {
    if (this.#voicemail?.hasCall === true) return 'voicemail';
    return this.#isScreened() ? 'screening' : undefined;
  }

  #tellProgress(): void {
    const by = this.#holderNow();
    if (by !== this.#holder) this.#host.report({ kind: 'held', by });
    this.#holder = by;
    if (this.isOver) this.#tellDone();
  }

  #tellDone(): void {
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

  /** A voice may stop a message before any of it went out, after a worker stood still: nothing was left then. */
  #asPlayed(report: PlanReport): PlanReport {
    const claimsMessage = report.kind === 'over' && report.outcome === 'voicemail-left';
    return claimsMessage && !this.#hasLeftMessage ? { kind: 'over', outcome: 'machine' } : report;
  }
}
