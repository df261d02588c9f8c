// Answers a call screener. The plan is always in one of these states:
//
// listening  The plan is waiting for the verdict "screening". Detection needs recognised words to
//            reach that verdict, so without speech-to-text the plan never leaves this state.
// asked      The screener is speaking. When it stops or beeps, the plan answers (`answering`).
// answering  The answer is playing, which happens once per call. Detection then starts another
//            round, because we may hear a person, a mailbox, or the screener next. If it's the
//            screener again, the plan listens but doesn't answer a second time.
// over       There's nothing left to answer.

import type { AmdEvent } from '../../calls/detection/amd-event.ts';
import type { ScreeningSettings } from '../../calls/plans/plans.ts';
import { noActions, type PlanAction, type PlanInput } from './plan-port.ts';

/**
 * Limits the detection rounds in a call. Whenever the screener speaks again ("please stay on the
 * line"), we start another round.
 */
const maxRounds = 4;

type State = 'listening' | 'asked' | 'answering' | 'over';

export class ScreeningPlan {
  readonly #settings: ScreeningSettings;
  #state: State = 'listening';
  #hasAnswered = false;
  #round = 1;

  constructor(settings: ScreeningSettings) {
    this.#settings = settings;
  }

  get isOver(): boolean {
    return this.#state === 'over';
  }

  /**
   * True while the plan controls the call. During that time, the end of a detection round doesn't
   * end detection, because another round shows who answers next.
   */
  get controlsCall(): boolean {
    return this.#state === 'asked' || this.#state === 'answering';
  }

  /** Handles the next detection event. */
  onAmd(event: AmdEvent): readonly PlanAction[] {
    if (this.#state === 'listening') this.#onAmdWhileListening(event);
    else if (this.#state === 'asked') return this.#onAmdWhileAsked(event);
    return noActions;
  }

  advance({ isPlaying }: PlanInput): readonly PlanAction[] {
    if (this.#state !== 'answering' || isPlaying) return noActions;
    return [{ do: 'muteBot', isMuted: false }, ...this.#startNextRound()];
  }

  #onAmdWhileListening({ event, reason }: AmdEvent): void {
    if (event === 'amd_machine_detected' && reason === 'call-screening') this.#state = 'asked';
    // If a person turns out to be a screener, detection corrects its own verdict. A round that ends
    // without a screening is therefore the last one.
    else if (event === 'amd_stopped') this.#state = 'over';
  }

  #onAmdWhileAsked({ event }: AmdEvent): readonly PlanAction[] {
    const isAsked = event === 'amd_machine_stopped_speaking' || event === 'amd_stopped';
    if (!isAsked) return noActions;
    const stop: PlanAction = { do: 'stopDetection', reason: 'screened' };
    if (this.#hasAnswered) return [stop, ...this.#startNextRound()];
    this.#hasAnswered = true;
    this.#state = 'answering';
    const { sound } = this.#settings;
    const playback = { playbackId: 'screening', source: 'screening' as const, sound };
    return [{ do: 'muteBot', isMuted: true }, stop, { do: 'play', playback }];
  }

  #startNextRound(): readonly PlanAction[] {
    if (this.#round === maxRounds) {
      this.#state = 'over';
      return noActions;
    }
    this.#round += 1;
    this.#state = 'listening';
    const report = { kind: 'armed' as const, round: this.#round };
    return [{ do: 'report', report }, { do: 'detect' }];
  }
}
