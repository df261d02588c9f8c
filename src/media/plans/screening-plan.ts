// Answers a call screening. States:
//
// listening  The plan waits for the verdict that this is a screening. Only words can show that, so
//            without speech-to-text the plan stays here.
// asked      The screener speaks. When it stops or beeps, the plan answers (`answering`).
// answering  The answer plays, once in a call. Then detection starts another round for whoever
//            comes next: a person, a mailbox, or the screener again. The plan listens to the
//            screener in a further round, but does not answer again.
// over       Nothing is left to answer.

import type { AmdEvent } from '../../calls/detection/amd-event.ts';
import type { ScreeningSettings } from '../../calls/plans/plans.ts';
import { nothingToDo, type PlanAction, type PlanInput } from './plan-port.ts';

/**
 * Rounds of detection in a call, at most. Each time the screener speaks again ("please stay on the
 * line"), another round follows.
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
   * Whether the plan has the call. The end of this round is then not the end of detection, because
   * the next round shows who comes.
   */
  get hasCall(): boolean {
    return this.#state === 'asked' || this.#state === 'answering';
  }

  /** Takes the next event of detection. */
  onAmd(event: AmdEvent): readonly PlanAction[] {
    if (this.#state === 'listening') this.#onAmdWhileListening(event);
    else if (this.#state === 'asked') return this.#onAmdWhileAsked(event);
    return nothingToDo;
  }

  advance({ isPlaying }: PlanInput): readonly PlanAction[] {
    if (this.#state !== 'answering' || isPlaying) return nothingToDo;
    return [{ do: 'muteBot', isMuted: false }, ...this.#listenAnew()];
  }

  #onAmdWhileListening({ event, reason }: AmdEvent): void {
    if (event === 'amd_machine_detected' && reason === 'call-screening') this.#state = 'asked';
    // If this was not a person after all, detection corrects its own verdict. A round that ends
    // without a screening is the last.
    else if (event === 'amd_stopped') this.#state = 'over';
  }

  #onAmdWhileAsked({ event }: AmdEvent): readonly PlanAction[] {
    const isAsked = event === 'amd_machine_stopped_speaking' || event === 'amd_stopped';
    if (!isAsked) return nothingToDo;
    const stop: PlanAction = { do: 'stopDetection', reason: 'screened' };
    if (this.#hasAnswered) return [stop, ...this.#listenAnew()];
    this.#hasAnswered = true;
    this.#state = 'answering';
    const { sound } = this.#settings;
    const playback = { playbackId: 'screening', source: 'screening' as const, sound };
    return [{ do: 'muteBot', isMuted: true }, stop, { do: 'play', playback }];
  }

  #listenAnew(): readonly PlanAction[] {
    if (this.#round === maxRounds) {
      this.#state = 'over';
      return nothingToDo;
    }
    this.#round += 1;
    this.#state = 'listening';
    const report = { kind: 'armed' as const, round: this.#round };
    return [{ do: 'report', report }, { do: 'detect' }];
  }
}
