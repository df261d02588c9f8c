// Leaves a message. States:
//
// listening    The plan waits for the verdict. A machine leads to `greeting`. The end of detection
//              without a machine leads to `over`.
// greeting     A machine speaks, or is about to beep. The bot is muted. The beep leads to
//              `playing`. If no beep comes in time, the message plays without one. A plan that may
//              only speak after a beep is then `over`.
// playing      The message plays. A beep restarts it. A voice stops it (`interrupted`). Its end
//              leads to `leaving`.
// interrupted  A voice was heard. If the greeting went on, the message restarts after it. If it is
//              a person, nothing more is played.
// leaving      The plan waits while the far end plays the last packets.
// over         The plan hung up, or has nothing to do in this call.

import type { AmdEvent } from '../../calls/detection/amd-event.ts';
import type { VoicemailSettings } from '../../calls/plans/plans.ts';
import type { HeardOnLine } from '../detector-port.ts';
import { frameMs, nothingToDo, type PlanAction, type PlanInput } from './plan-port.ts';

/**
 * Speech that interrupts the message. Anything shorter is a cough, a click, or the start of comfort
 * noise.
 */
const interruptedByMs = 240;
/**
 * A pause after which the speaker is a person who waits for an answer. A greeting would have beeped
 * by then.
 */
const personWaitsMs = 1_300;
/**
 * Restarts of the message, at most. Then it plays over a line that is never quiet, or over a menu
 * that repeats itself.
 */
const maxRestarts = 5;
/** Audio that the far end's jitter buffer may still hold. */
const leavingMs = 200;

type State =
  | { readonly name: 'listening' }
  | {
      readonly name: 'greeting';
      /**
       * True after the network's three tones (SIT): this is an announcement, not a mailbox, unless
       * it beeps.
       */
      readonly needsBeep: boolean;
      /** True if detection is over. The plan itself must then end the wait for the beep. */
      readonly waitsItself: boolean;
    }
  | { readonly name: 'playing' | 'interrupted' | 'leaving' | 'over' };

const over: State = { name: 'over' };
const listening: State = { name: 'listening' };

export class VoicemailPlan {
  readonly #settings: VoicemailSettings;
  #state: State = listening;
  #restarts = 0;
  #afterBeep = false;
  /** Milliseconds since the message first started. */
  #elapsedMs = 0;
  /** Milliseconds since the end of the message. */
  #leavingMs = 0;

  constructor(settings: VoicemailSettings) {
    this.#settings = settings;
  }

  get isOver(): boolean {
    return this.#state.name === 'over';
  }

  /**
   * Whether the plan has the call. Then neither detection nor a bot ends the call, and the bot is
   * muted.
   */
  get hasCall(): boolean {
    const { name } = this.#state;
    return name !== 'listening' && name !== 'over';
  }

  /**
   * Takes the next event of detection. Events of a screener that will be answered do not come here.
   */
  onAmd(event: AmdEvent): readonly PlanAction[] {
    if (this.#state.name === 'listening') return this.#onAmdWhileListening(event);
    if (this.#state.name === 'greeting') return this.#onAmdWhileGreeting(event, this.#state);
    return nothingToDo;
  }

  /** Advances the plan by one frame of 20 ms. */
  advance({ heard, isPlaying }: PlanInput): readonly PlanAction[] {
    switch (this.#state.name) {
      case 'greeting':
        return this.#greeting(heard, this.#state.waitsItself);
      case 'playing':
        return this.#playing(heard, isPlaying);
      case 'interrupted':
        return this.#interrupted(heard);
      case 'leaving':
        return this.#leaving();
      case 'listening':
      case 'over':
        return nothingToDo;
    }
  }

  #onAmdWhileListening({ event, reason }: AmdEvent): readonly PlanAction[] {
    if (event === 'amd_tone_detected') return this.#start(true);
    if (event === 'amd_stopped') {
      // If a screening is not answered, only this event reports who came after it.
      if (reason === 'machine-after-screening') return this.#greet(false, true);
      this.#state = over;
    }
    if (event !== 'amd_machine_detected' || reason === 'call-screening') return nothingToDo;
    if (reason === 'fax-tone') return this.#leave('machine');
    return this.#greet(reason === 'sit-tone', false);
  }

  #greet(needsBeep: boolean, waitsItself: boolean): readonly PlanAction[] {
    this.#state = { name: 'greeting', needsBeep, waitsItself };
    return [{ do: 'muteBot', isMuted: true }];
  }

  #onAmdWhileGreeting(
    event: AmdEvent,
    { needsBeep }: State & { name: 'greeting' },
  ): readonly PlanAction[] {
    if (event.event === 'amd_tone_detected') return this.#start(true);
    if (event.event !== 'amd_stopped' || event.reason === 'tone') return nothingToDo;
    return needsBeep ? this.#leave('machine') : this.#withoutBeep();
  }

  #greeting(heard: HeardOnLine | undefined, waitsItself: boolean): readonly PlanAction[] {
    // Nothing is heard any more. If detection is over, no event will end the wait either.
    if (heard === undefined) return waitsItself ? this.#withoutBeep() : nothingToDo;
    if (heard.beep) return this.#start(true);
    const isOver = heard.pauseMs >= this.#settings.waitForBeepMs && !heard.tonePending;
    return waitsItself && isOver ? this.#withoutBeep() : nothingToDo;
  }

  #withoutBeep(): readonly PlanAction[] {
    return this.#settings.ifNoBeep === 'hangup' ? this.#leave('machine') : this.#start(false);
  }

  #start(afterBeep: boolean): readonly PlanAction[] {
    this.#state = { name: 'playing' };
    this.#afterBeep = afterBeep;
    return [
      { do: 'muteBot', isMuted: true },
      { do: 'stopStream' },
      { do: 'forgetSpeaker' },
      this.#play(),
    ];
  }

  #startAnew(afterBeep: boolean): readonly PlanAction[] {
    this.#state = { name: 'playing' };
    this.#restarts += 1;
    this.#afterBeep ||= afterBeep;
    return [{ do: 'forgetSpeaker' }, this.#play()];
  }

  #play(): PlanAction {
    const { sound } = this.#settings;
    const playback = {
      ...{ playbackId: 'voicemail', source: 'voicemail' as const, sound },
      ...(this.#restarts === 0 ? {} : { restart: this.#restarts }),
      afterBeep: this.#afterBeep,
    };
    return { do: 'play', playback };
  }

  #playing(heard: HeardOnLine | undefined, isPlaying: boolean): readonly PlanAction[] {
    if (this.#isTooLong()) return this.#leave('voicemail-left');
    const mayRestart = heard !== undefined && this.#restarts < maxRestarts;
    if (mayRestart && heard.beep) return this.#startAnew(true);
    if (mayRestart && heard.speechMs >= interruptedByMs) {
      this.#state = { name: 'interrupted' };
      return [{ do: 'stopPlaying' }];
    }
    if (!isPlaying) this.#state = { name: 'leaving' };
    return nothingToDo;
  }

  #interrupted(heard: HeardOnLine | undefined): readonly PlanAction[] {
    if (this.#isTooLong() || heard === undefined) return this.#leave('voicemail-left');
    if (heard.beep) return this.#startAnew(true);
    if (heard.tonePending) return nothingToDo;
    if (heard.who === 'human' && heard.pauseMs >= personWaitsMs) {
      return this.#leave('voicemail-left');
    }
    return heard.pauseMs >= this.#settings.waitForBeepMs ? this.#startAnew(false) : nothingToDo;
  }

  #leaving(): readonly PlanAction[] {
    this.#leavingMs += frameMs;
    return this.#leavingMs >= leavingMs ? this.#leave('voicemail-left') : nothingToDo;
  }

  #isTooLong(): boolean {
    this.#elapsedMs += frameMs;
    return this.#elapsedMs >= this.#settings.maxMs;
  }

  #leave(outcome: 'voicemail-left' | 'machine'): readonly PlanAction[] {
    this.#state = over;
    return [{ do: 'stopPlaying' }, { do: 'report', report: { kind: 'over', outcome } }];
  }
}
