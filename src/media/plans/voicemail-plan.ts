// Leaves a message on a machine. The plan is always in one of these states:
//
// listening    The plan is waiting for the verdict. A machine leads to `greeting`. If detection
//              ends without finding a machine, the plan is `over`.
// greeting     The machine is speaking or about to beep, and the bot is muted. The beep leads to
//              `playing`. If we don't hear a beep in time, the message plays without one, unless
//              the plan may only speak after a beep. In that case it's `over`.
// playing      The message is playing. A beep restarts it, and a voice stops it (`interrupted`).
//              When the message ends, the plan is `leaving`.
// interrupted  A voice has stopped the message. If the voice was the rest of the greeting, the
//              message restarts once the greeting has ended. If it was a person, we don't play
//              anything else.
// leaving      We're waiting until the far end has played the last packets.
// over         The plan has reported its outcome, or has nothing to do in this call.

import type { AmdEvent } from '../../calls/detection/amd-event.ts';
import type { VoicemailSettings } from '../../calls/plans/plans.ts';
import type { HeardOnLine } from '../detector-port.ts';
import { frameMs, noActions, type PlanAction, type PlanInput } from './plan-port.ts';

/**
 * The message stops after this much speech. Anything shorter is usually a cough, a click, or the
 * start of comfort noise.
 */
const interruptingSpeechMs = 240;
/**
 * A speaker who pauses for this long is a person who's waiting for an answer. If it were a
 * greeting, we'd have heard the beep by then.
 */
const personWaitsMs = 1_300;
/**
 * After this many restarts, we let the message play to its end, because the line is apparently
 * never quiet, or a menu keeps repeating.
 */
const maxRestarts = 5;
/** The far end's jitter buffer may still contain this much audio. */
const leavingMs = 200;

type State =
  | { readonly name: 'listening' }
  | {
      readonly name: 'greeting';
      /**
       * True after the network's three tones (SIT). Any voice after these tones is an announcement
       * rather than a mailbox, unless we hear a beep.
       */
      readonly needsBeep: boolean;
      /**
       * True if detection has ended, in which case the plan has to decide for itself when to stop
       * waiting for the beep.
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
  /** Milliseconds since the message started for the first time. */
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
   * True while the plan controls the call. During that time, neither detection nor the bot can end
   * the call, and the bot is muted.
   */
  get controlsCall(): boolean {
    const { name } = this.#state;
    return name !== 'listening' && name !== 'over';
  }

  /**
   * Handles the next detection event. Events about a screener that the screening plan is answering
   * aren't passed to this plan.
   */
  onAmd(event: AmdEvent): readonly PlanAction[] {
    if (this.#state.name === 'listening') return this.#onAmdWhileListening(event);
    if (this.#state.name === 'greeting') return this.#onAmdWhileGreeting(event, this.#state);
    return noActions;
  }

  /** Advances the plan by one 20 ms frame. */
  advance({ heard, isPlaying }: PlanInput): readonly PlanAction[] {
    switch (this.#state.name) {
      case 'greeting':
        return this.#advanceGreeting(heard, this.#state.waitsItself);
      case 'playing':
        return this.#advancePlaying(heard, isPlaying);
      case 'interrupted':
        return this.#advanceInterrupted(heard);
      case 'leaving':
        return this.#advanceLeaving();
      case 'listening':
      case 'over':
        return noActions;
    }
  }

  #onAmdWhileListening({ event, reason }: AmdEvent): readonly PlanAction[] {
    if (event === 'amd_tone_detected') return this.#start(true);
    if (event === 'amd_stopped') {
      // If no plan has answered the screener, this is the only event that shows what came next.
      if (reason === 'machine-after-screening') return this.#enterGreeting(false, true);
      this.#state = over;
    }
    if (event !== 'amd_machine_detected' || reason === 'call-screening') return noActions;
    if (reason === 'fax-tone') return this.#finish('machine');
    return this.#enterGreeting(reason === 'sit-tone', false);
  }

  #enterGreeting(needsBeep: boolean, waitsItself: boolean): readonly PlanAction[] {
    this.#state = { name: 'greeting', needsBeep, waitsItself };
    return [{ do: 'muteBot', isMuted: true }];
  }

  #onAmdWhileGreeting(
    event: AmdEvent,
    { needsBeep }: State & { name: 'greeting' },
  ): readonly PlanAction[] {
    if (event.event === 'amd_tone_detected') return this.#start(true);
    if (event.event !== 'amd_stopped' || event.reason === 'tone') return noActions;
    return needsBeep ? this.#finish('machine') : this.#continueWithoutBeep();
  }

  #advanceGreeting(heard: HeardOnLine | undefined, waitsItself: boolean): readonly PlanAction[] {
    // The detector's ear is gone. If detection has ended as well, no further event will end the
    // wait.
    if (heard === undefined) return waitsItself ? this.#continueWithoutBeep() : noActions;
    if (heard.beep) return this.#start(true);
    const hasWaited = heard.pauseMs >= this.#settings.waitForBeepMs && !heard.tonePending;
    return waitsItself && hasWaited ? this.#continueWithoutBeep() : noActions;
  }

  #continueWithoutBeep(): readonly PlanAction[] {
    return this.#settings.ifNoBeep === 'hangup' ? this.#finish('machine') : this.#start(false);
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

  #advancePlaying(heard: HeardOnLine | undefined, isPlaying: boolean): readonly PlanAction[] {
    if (this.#isTooLong()) return this.#finish('voicemail-left');
    const mayRestart = heard !== undefined && this.#restarts < maxRestarts;
    if (mayRestart && heard.beep) return this.#restartMessage(true);
    if (mayRestart && heard.speechMs >= interruptingSpeechMs) {
      this.#state = { name: 'interrupted' };
      return [{ do: 'stopPlaying' }];
    }
    if (!isPlaying) this.#state = { name: 'leaving' };
    return noActions;
  }

  #advanceInterrupted(heard: HeardOnLine | undefined): readonly PlanAction[] {
    if (this.#isTooLong() || heard === undefined) return this.#finish('voicemail-left');
    if (heard.beep) return this.#restartMessage(true);
    if (heard.tonePending) return noActions;
    if (heard.who === 'human' && heard.pauseMs >= personWaitsMs) {
      return this.#finish('voicemail-left');
    }
    return heard.pauseMs >= this.#settings.waitForBeepMs ? this.#restartMessage(false) : noActions;
  }

  #advanceLeaving(): readonly PlanAction[] {
    this.#leavingMs += frameMs;
    return this.#leavingMs >= leavingMs ? this.#finish('voicemail-left') : noActions;
  }

  #isTooLong(): boolean {
    this.#elapsedMs += frameMs;
    return this.#elapsedMs >= this.#settings.maxMs;
  }

  #finish(outcome: 'voicemail-left' | 'machine'): readonly PlanAction[] {
    this.#state = over;
    return [{ do: 'stopPlaying' }, { do: 'report', report: { kind: 'over', outcome } }];
  }
}
