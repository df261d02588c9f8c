// A callee who says hello and replies to the caller. One variant interrupts a caller who talks for
// too long, but only once. Another presses a key instead of giving its first reply. The talker
// measures the audio that it receives, so that developers who are trying out a bot can see how much
// of the bot's audio arrived. It has no timers, so all times are based on the call's ticks and on
// the length of the audio that arrives.

import type { Codec } from '../../media/g711.ts';
import { frameMs, type SoundLibrary, type SoundName } from './sounds.ts';
import { VoiceTurns } from './voice-turns.ts';

/** What a talker has measured during a call. */
export type TalkSummary = {
  /** Total duration of the caller's speech, not counting pauses. */
  readonly voiceMs: number;
  /** Number of turns in which the caller spoke. */
  readonly turns: number;
  /** Number of replies from the talker, not counting its hello. */
  readonly answers: number;
  /**
   * Time between the talker's interruption and the moment when the caller fell silent. Undefined if
   * the talker didn't interrupt, or if the caller didn't stop.
   */
  readonly silencedAfterMs?: number;
};

export type TalkManner = {
  /** Interrupts the caller once, after 2 s of speech. */
  readonly interrupts?: true;
  /** The key that the talker presses after the caller's first turn, instead of replying. */
  readonly presses?: string;
  /** Maximum number of replies. Default: 3. */
  readonly answers?: number;
};

/** After a pause of this length, people assume that the other person's turn has ended. */
const pauseMs = 800;
const interruptAfterMs = 2_000;
/** Without a limit, a bot and a talker might keep replying to each other forever. */
const defaultAnswers = 3;

export class Talker {
  readonly #sounds: SoundLibrary;
  readonly #turns = new VoiceTurns(pauseMs);
  /** The key that's still to be pressed, if any. */
  #key: string | undefined;
  #isPressing = false;
  #mayInterrupt: boolean;
  readonly #maxAnswers: number;
  #saying: SoundName | undefined = 'hello';
  #saidMs = 0;
  #turnMs = 0;
  #ended = 0;
  #answers = 0;
  /**
   * Length of the audio since the talker's interruption. Undefined unless the caller has continued
   * to talk.
   */
  #interruptingMs: number | undefined;
  #silencedAfterMs: number | undefined;
  #silentMs = 0;

  constructor(sounds: SoundLibrary, { interrupts, presses, answers = defaultAnswers }: TalkManner) {
    this.#maxAnswers = answers;
    this.#sounds = sounds;
    this.#key = presses;
    this.#mayInterrupt = interrupts === true;
  }

  /** Duration of the silence since either side last spoke. */
  get silentMs(): number {
    return this.#silentMs;
  }

  get summary(): TalkSummary {
    const { voiceMs, isSpeaking } = this.#turns;
    const silencedAfterMs = this.#silencedAfterMs;
    return {
      voiceMs,
      turns: this.#ended + (isSpeaking ? 1 : 0),
      answers: this.#answers,
      ...(silencedAfterMs === undefined ? {} : { silencedAfterMs }),
    };
  }

  /** Processes the payload of one packet from the caller. */
  hear(payload: Uint8Array, codec: Codec): void {
    const ms = payload.length / 8;
    const change = this.#turns.hear(payload, codec);
    if (this.#interruptingMs !== undefined) this.#interruptingMs += ms;
    this.#turnMs = this.#turns.isSpeaking ? this.#turnMs + ms : 0;
    if (change === 'ended') this.#takeTurn();
    else if (this.#turnMs >= interruptAfterMs && this.#mayInterrupt) this.#interrupt();
  }

  /** Returns the key to press now. Each key is returned only once. */
  takeKey(): string | undefined {
    if (!this.#isPressing) return undefined;
    const key = this.#key;
    this.#isPressing = false;
    this.#key = undefined;
    return key;
  }

  /** Returns the next 20 ms of the talker's audio. */
  nextFrame(codec: Codec): Uint8Array {
    const isSilent = this.#saying === undefined && !this.#turns.isSpeaking;
    this.#silentMs = isSilent ? this.#silentMs + frameMs : 0;
    const sound = this.#saying ?? 'silence';
    const frame = this.#sounds.frame(sound, this.#saidMs / frameMs, codec);
    this.#saidMs += frameMs;
    if (this.#saidMs >= this.#sounds.lengthMs(sound)) this.#saying = undefined;
    return frame;
  }

  #interrupt(): void {
    this.#mayInterrupt = false;
    this.#interruptingMs = 0;
    this.#say('interruption');
  }

  /**
   * Reacts to the end of the caller's turn. If the caller was interrupted, there's no reply,
   * because the talker has just spoken.
   */
  #takeTurn(): void {
    this.#ended += 1;
    if (this.#interruptingMs !== undefined) {
      this.#silencedAfterMs = Math.max(0, this.#interruptingMs - pauseMs);
      this.#interruptingMs = undefined;
      return;
    }
    if (this.#key !== undefined) {
      this.#isPressing = true;
      return;
    }
    if (this.#answers >= this.#maxAnswers) return;
    this.#answers += 1;
    this.#say('answer');
  }

  #say(sound: SoundName): void {
    this.#saying = sound;
    this.#saidMs = 0;
  }
}
