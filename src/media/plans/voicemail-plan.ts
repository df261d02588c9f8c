// Leaves a message. States:
//
// listening    Who is it? Left with a machine's verdict, for `greeting`; with the end of detection, if it was none, for `over`.
// greeting     A machine speaks, or is about to beep. The bot is not heard any more. Left by the beep, or when none came in time:
//              to `playing`, or to `over` where nothing is to be said without a beep.
// playing      The message plays. A beep starts it anew; a voice stops it (`interrupted`); its end leads to `leaving`.
// interrupted  A voice was heard: the greeting went on, and the message starts anew when that is over; or it is a person, and nothing
//              more is played.
// leaving      The far end plays what is on its way to it.
// over         Hung up, or nothing to do with this call.

import type { AmdEvent } from '../../calls/detection/amd-event.ts';
import type { VoicemailSettings } from '../../calls/plans/plans.ts';
import type { HeardOnLine } from '../detector-port.ts';
import { frameMs, nothingToDo, type PlanAction, type PlanInput } from './plan-port.ts';

/** Less is a cough, a click, a comfort noise that begins. */
const interruptedByMs = 240;
/** A person who spoke waits for an answer; a greeting's beep would have come. */
const personWaitsMs = 1_300;
/** A line that is never quiet, or a menu that goes round, gets the message over what it says. */
const maxRestarts = 5;
/** What a jitter buffer may still hold. */
const leavingMs = 200;

type State =
  | { readonly name: 'listening' }
  | {
      readonly name: 'greeting';
      /** The network's three tones: an announcement, and no mailbox unless it beeps. */
      readonly needsBeep: boolean;
      /** Detection is over: nothing else says when the wait is. */
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
  /** Since the first start; since the message's end. */
  #elapsedMs = 0;
  #leavingMs = 0;

  constructor(settings: VoicemailSettings) {
    this.#settings = settings;
  }

  get isOver(): boolean {
    return this.#state.name === 'over';
  }

  /** Whether the call is the plan's: neither detection nor a bot ends it, and no bot is heard in it. */
  get hasCall(): boolean {
    const { name } = this.#state;
    return name !== 'listening' && name !== 'over';
  }

  /** Of detection, in order; not what a screener says that is answered. */
  told(event: AmdEvent): readonly PlanAction[] {
    if (this.#state.name === 'listening') return this.#toldWhileListening(event);
    if (this.#state.name === 'greeting') return this.#toldWhileGreeting(event, this.#state);
    return nothingToDo;
  }

  /** One frame later. */
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

  #toldWhileListening({ event, reason }: AmdEvent): readonly PlanAction[] {
    if (event === 'amd_tone_detected') return this.#start(true);
    if (event === 'amd_stopped') {
      // Who came after a screening that is not answered is said here.
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

  #toldWhileGreeting(
    event: AmdEvent,
    { needsBeep }: State & { name: 'greeting' },
  ): readonly PlanAction[] {
    if (event.event === 'amd_tone_detected') return this.#start(true);
    if (event.event !== 'amd_stopped' || event.reason === 'tone') return nothingToDo;
    return needsBeep ? this.#leave('machine') : this.#withoutBeep();
  }

  #greeting(heard: HeardOnLine | undefined, waitsItself: boolean): readonly PlanAction[] {
    // Nothing is heard any more, and without detection nothing is told either.
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
