// A callee who talks with the caller: says hello, answers what is said; one interrupts once who talks at length, another one
// presses a key in place of the first answer. It measures what it hears, so that a try of a bot's audio ends with what came through. Its clock is the ticks of its call and the audio that arrives.

import type { Codec } from '../../media/g711.ts';
import { frameMs, type SoundLibrary, type SoundName } from './sounds.ts';
import { VoiceTurns } from './voice-turns.ts';

/** Measured by a talker. */
export type TalkSummary = {
  /** Voice of the caller, pauses left out, and in how many turns. */
  readonly voiceMs: number;
  readonly turns: number;
  /** Of its own, the hello left out. */
  readonly answers: number;
  /** From the first sound of its interruption to the last of the caller's voice. Left out: it did not interrupt, or was not heeded. */
  readonly silencedAfterMs?: number;
};

export type TalkManner = {
  /** Once, who talks for 2 s. */
  readonly interrupts?: true;
  /** When the first prompt is over, in place of an answer. */
  readonly presses?: string;
  /** At most. */
  readonly answers?: number;
};

/** What people wait for before they take a pause for an end. */
const pauseMs = 800;
const interruptAfterMs = 2_000;
/** A bot and a talker that answer each other must end. */
const usualAnswers = 3;

export class Talker {
  readonly #sounds: SoundLibrary;
  readonly #turns = new VoiceTurns(pauseMs);
  /** Still to be pressed. */
  #key: string | undefined;
  #isPressing = false;
  #mayInterrupt: boolean;
  readonly #maxAnswers: number;
  #saying: SoundName | undefined = 'hello';
  #saidMs = 0;
  #turnMs = 0;
  #ended = 0;
  #answers = 0;
  /** What it has heard since it began to interrupt, while the caller goes on. */
  #interruptingMs: number | undefined;
  #silencedAfterMs: number | undefined;
  #silentMs = 0;

  constructor(sounds: SoundLibrary, { interrupts, presses, answers = usualAnswers }: TalkManner) {
    this.#maxAnswers = answers;
    this.#sounds = sounds;
    this.#key = presses;
    this.#mayInterrupt = interrupts === true;
  }

  /** How long neither end has said anything. */
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

  /** A packet of the caller. */
  hear(payload: Uint8Array, codec: Codec): void {
    const ms = payload.length / 8;
    const change = this.#turns.hear(payload, codec);
    if (this.#interruptingMs !== undefined) this.#interruptingMs += ms;
    this.#turnMs = this.#turns.isSpeaking ? this.#turnMs + ms : 0;
    if (change === 'ended') this.#takeTurn();
    else if (this.#turnMs >= interruptAfterMs && this.#mayInterrupt) this.#interrupt();
  }

  /** The key that is to be pressed now, once. */
  takeKey(): string | undefined {
    if (!this.#isPressing) return undefined;
    const key = this.#key;
    this.#isPressing = false;
    this.#key = undefined;
    return key;
  }

  /** The next 20 ms of its own. */
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

  /** The caller paused: who was interrupted gets no answer, as the word is the talker's already. */
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
