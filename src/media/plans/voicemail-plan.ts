// Leaves a message on a machine. States:
//
// listening    Waits for the verdict. A machine leads to `greeting`. If detection ends without a
//              machine, the plan is `over`.
// greeting     The machine speaks or is about to beep. The bot is muted. The beep leads to
//              `playing`. If no beep comes in time, the message plays without one, unless the plan
//              may only speak after a beep: then it is `over`.
// playing      The message plays. A beep restarts it. A voice stops it (`interrupted`). After its
//              end the plan is `leaving`.
// interrupted  A voice stopped the message. If the voice was the rest of the greeting, the message
//              restarts after it. If it was a person, nothing more is played.
// leaving      Waits until the far end has played the last packets.
// over         The plan has reported its outcome, or has nothing to do in this call.

import type { AmdEvent } from '../../calls/detection/amd-event.ts';
import type { VoicemailSettings } from '../../calls/plans/plans.ts';
import type { HeardOnLine } from '../detector-port.ts';
import { frameMs, nothingToDo, type PlanAction, type PlanInput } from './plan-port.ts';

/**
 * This much speech interrupts the message. Anything shorter is a cough, a click, or the start of
 * comfort noise.
 */
const interruptingSpeechMs = 240;
/**
 * After this pause, the speaker is a person waiting for an answer. A greeting would have ended with
 * its beep by then.
 */
const personWaitsMs = 1_300;
/**
 * Limit on restarts of the message. After that, the message plays on, because the line is never
 * quiet or a menu repeats forever.
 */
const maxRestarts = 5;
/** Longest stretch of audio that the far end's jitter buffer may still hold. */
const leavingMs = 200;

type State =
  | { readonly name: 'listening' }
  | {
      readonly name: 'greeting';
      /**
       * True after the network's three tones (SIT). What speaks is then an announcement and not a
       * mailbox, unless it beeps.
       */
      readonly needsBeep: boolean;
      /**
       * True if detection has ended. The plan itself must then decide when to stop waiting for the
       * beep.
       */
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
   * Whether the plan controls the call. While it does, neither detection nor the bot ends the call,
   * and the bot is muted.
   */
  get controlsCall(): boolean {
    const { name } = this.#state;
    return name !== 'listening' && name !== 'over';
  }

  /**
   * Takes the next event of detection. Receives no events about a screener that the screening plan
   * answers.
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
      // If no plan answers the screening, only this event shows what came after it.
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
    // The ear is gone. If detection has ended, no event will end the wait either.
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

  #restartMessage(afterBeep: boolean): readonly PlanAction[] {
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
    if (mayRestart && heard.beep) return this.#restartMessage(true);
    if (mayRestart && heard.speechMs >= interruptingSpeechMs) {
      this.#state = { name: 'interrupted' };
      return [{ do: 'stopPlaying' }];
    }
    if (!isPlaying) this.#state = { name: 'leaving' };
    return nothingToDo;
  }

  #interrupted(heard: HeardOnLine | undefined): readonly PlanAction[] {
    if (this.#isTooLong() || heard === undefined) return this.#leave('voicemail-left');
    if (heard.beep) return this.#restartMessage(true);
    if (heard.tonePending) return nothingToDo;
    if (heard.who === 'human' && heard.pauseMs >= personWaitsMs) {
      return this.#leave('voicemail-left');
    }
    return heard.pauseMs >= this.#settings.waitForBeepMs
      ? this.#restartMessage(false)
      : nothingToDo;
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
