// Who speaks, from when to when, by the level of G.711 audio alone. Enough for a quiet line, the sandbox's talker and the sample
// bot; in a noisy street it takes noise for a voice, where a bot for customers has a voice detector of its own.

import { type Codec, decodeTable } from '../../media/g711.ts';

/** Louder than the noise of a telephone line, which is at -50 dBFS or below, and quieter than a quiet voice. */
const voiceLevelDbfs = -42;
const voicePower = (32_768 * 10 ** (voiceLevelDbfs / 20)) ** 2;
/** A click or a breath is shorter. */
const beginMs = 100;
/** Within a sentence people pause for less. */
const usualPauseMs = 700;
const bytesPerMs = 8;

export class VoiceTurns {
  /** The other end is in the middle of a turn, its pauses included. */
  isSpeaking = false;
  /** How much voice there was in all turns, pauses left out. */
  voiceMs = 0;
  readonly #pauseMs: number;
  /** Towards the beginning of a turn; the pause within one. */
  #candidateMs = 0;
  #silentMs = 0;

  /** @param pauseMs after this much silence a turn is over */
  constructor(pauseMs = usualPauseMs) {
    this.#pauseMs = pauseMs;
  }

  /** The next piece of audio, in the order it was spoken; its own clock, so that nothing here depends on arrival times. */
  hear(payload: Uint8Array, codec: Codec = 'PCMU'): 'began' | 'ended' | undefined {
    const ms = payload.length / bytesPerMs;
    const isVoice = powerOf(payload, codec) >= voicePower;
    return this.isSpeaking ? this.#goOn(ms, isVoice) : this.#listen(ms, isVoice);
  }

  #listen(ms: number, isVoice: boolean): 'began' | undefined {
    this.#candidateMs = Math.max(0, this.#candidateMs + (isVoice ? ms : -ms));
    if (this.#candidateMs < beginMs) return undefined;
    this.isSpeaking = true;
    this.voiceMs += this.#candidateMs;
    this.#silentMs = 0;
    return 'began';
  }

  #goOn(ms: number, isVoice: boolean): 'ended' | undefined {
    if (isVoice) this.voiceMs += ms;
    this.#silentMs = isVoice ? 0 : this.#silentMs + ms;
    if (this.#silentMs < this.#pauseMs) return undefined;
    this.isSpeaking = false;
    this.#candidateMs = 0;
    return 'ended';
  }
}

function powerOf(payload: Uint8Array, codec: Codec): number {
  const samples = decodeTable[codec];
  let sum = 0;
  for (const byte of payload) sum += (samples[byte] ?? 0) ** 2;
  return payload.length === 0 ? 0 : sum / payload.length;
}
