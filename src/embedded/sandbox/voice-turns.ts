// Detects when the far end of the call starts and stops speaking, based only on the level of its
// G.711 audio. That's good enough for the sandbox's talker, the sample bot, and quiet lines in
// general. But since it would mistake the noise of a street for a voice, a bot for real customers
// needs a proper voice detector.

import { type Codec, decodeTable } from '../../media/g711.ts';

/**
 * Below the level of a quiet voice, but above a phone line's noise, which doesn't exceed -50 dBFS.
 */
const voiceLevelDbfs = -42;
const voicePower = (32_768 * 10 ** (voiceLevelDbfs / 20)) ** 2;
/** A turn starts after this much voice. Clicks and breaths are shorter. */
const beginMs = 100;
/** People don't usually pause for this long within a sentence. */
const defaultPauseMs = 700;
const bytesPerMs = 8;

export class VoiceTurns {
  /** True during a turn, including its shorter pauses. */
  isSpeaking = false;
  /** Total duration of the speech in all turns, not counting pauses. */
  voiceMs = 0;
  readonly #pauseMs: number;
  /** Duration of the sound that may become a turn, less the silence in between. */
  #candidateMs = 0;
  /** Duration of the current pause within a turn. */
  #silentMs = 0;

  /** @param pauseMs silence of this length ends a turn */
  constructor(pauseMs = defaultPauseMs) {
    this.#pauseMs = pauseMs;
  }

  /**
   * Processes the next piece of audio, in the order in which it was spoken. Time is measured by the
   * length of the audio, so the packets' arrival times don't matter.
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
