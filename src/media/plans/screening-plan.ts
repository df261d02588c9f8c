// Answers a call screening. States:
//
// listening  Is it one? Only words say so: without speech-to-text it never is.
// asked      The screener speaks. Left when it stopped, or by its beep; to `answering`.
// answering  The answer plays, once in a call. Then detection begins anew, for the one who comes: a person, a mailbox, the screener
//            again, which is then listened to in another round, without an answer.
// over       There is nothing to answer any more.

import type { AmdEvent } from '../../calls/detection/amd-event.ts';
import type { ScreeningSettings } from '../../calls/plans/plans.ts';
import { nothingToDo, type PlanAction, type PlanInput } from './plan-port.ts';

/** A screener that says who it is once more ("please stay on the line") is followed so often. */
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

  /** Who may come is not known yet: what detection says last in this round is not the last that it says. */
  get hasCall(): boolean {
    return this.#state === 'asked' || this.#state === 'answering';
  }

  told(event: AmdEvent): readonly PlanAction[] {
    if (this.#state === 'listening') this.#toldWhileListening(event);
    else if (this.#state === 'asked') return this.#toldWhileAsked(event);
    return nothingToDo;
  }

  advance({ isPlaying }: PlanInput): readonly PlanAction[] {
    if (this.#state !== 'answering' || isPlaying) return nothingToDo;
    return [{ do: 'muteBot', isMuted: false }, ...this.#listenAnew()];
  }

  #toldWhileListening({ event, reason }: AmdEvent): void {
    if (event === 'amd_machine_detected' && reason === 'call-screening') this.#state = 'asked';
    // A person who was none after all is detection's to say; a round that ended otherwise is the last.
    else if (event === 'amd_stopped') this.#state = 'over';
  }

  #toldWhileAsked({ event }: AmdEvent): readonly PlanAction[] {
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
