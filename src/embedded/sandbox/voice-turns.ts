// Detects when the other end starts and stops speaking, by the level of its G.711 audio alone. This
// is enough for a quiet line, the sandbox's talker and the sample bot. In a noisy street, it
// mistakes noise for a voice. A bot for customers needs a real voice detector.

import { type Codec, decodeTable } from '../../media/g711.ts';

/** Above the noise of a telephone line, which is at -50 dBFS or below, and below a quiet voice. */
const voiceLevelDbfs = -42;
const voicePower = (32_768 * 10 ** (voiceLevelDbfs / 20)) ** 2;
/** This much voice starts a turn. A click or a breath is shorter. */
const beginMs = 100;
/** People pause for less than this within a sentence. */
const defaultPauseMs = 700;
const bytesPerMs = 8;

export class VoiceTurns {
  /** True while the other end is in a turn. A pause shorter than the limit belongs to the turn. */
  isSpeaking = false;
  /** Total voice in all turns, without the pauses. */
  voiceMs = 0;
  readonly #pauseMs: number;
  /** Voice that may become a turn, less the silence in between. */
  #candidateMs = 0;
  /** Length of the current pause within a turn. */
  #silentMs = 0;

  /** @param pauseMs silence of this length ends a turn */
  constructor(pauseMs = defaultPauseMs) {
    this.#pauseMs = pauseMs;
  }

  /**
   * Takes the next piece of audio, in the order in which it was spoken. Measures time by the length
   * of the audio, so that the result does not depend on when packets arrive.
   */
  hear(payload: Uint8Array, codec: Codec = 'PCMU'): 'began' | 'ended' | undefined {
    const ms = payload.length / bytesPerMs;
    const isVoice = powerOf(payload, codec) >= voicePower;
    return this.isSpeaking ? this.#continueTurn(ms, isVoice) : this.#listen(ms, isVoice);
  }

  #listen(ms: number, isVoice: boolean): 'began' | undefined {
    this.#candidateMs = Math.max(0, this.#candidateMs + (isVoice ? ms : -ms));
    if (this.#candidateMs < beginMs) return undefined;
    this.isSpeaking = true;
    this.voiceMs += this.#candidateMs;
    this.#silentMs = 0;
    return 'began';
  }

  #continueTurn(ms: number, isVoice: boolean): 'ended' | undefined {
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
