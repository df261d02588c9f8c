// What a recogniser has understood so far, in the form that the detector uses: a second opinion on
// the words. Pure.

export type SettlingPhrase = 'voicemail-phrase' | 'call-screening';

export type Transcription = {
  readonly words: number;
  /** How far into the call the recogniser has listened, by the sample clock. */
  readonly heardUntilMs: number;
  /** A phrase that no person says after picking up. */
  readonly phrase?: SettlingPhrase;
  /** The latest text ends with an offer to help. */
  readonly asksForHelp?: boolean;
};

/**
 * A recogniser always lags by its latency. If it lags by more than this, its count is stale and the
 * detector's own count is used.
 */
const longestLagMs = 1_000;

/**
 * Returns true if the transcription covers what was said by now. Its words then replace the
 * detector's own count.
 */
export function keepsUp(
  transcription: Transcription | undefined,
  elapsedMs: number,
  pauseMs: number,
): transcription is Transcription {
  // If speech was heard, a transcription without words is no better than the detector's own count.
  if (transcription === undefined || transcription.words === 0) return false;
  return transcription.heardUntilMs >= Math.min(elapsedMs - longestLagMs, elapsedMs - pauseMs);
}

type Counted = { readonly words: number; readonly pauseMs: number };

/**
 * Returns the utterance with the words that count, and the phrase that decides the verdict. On a
 * silent line the transcription is ignored.
 */
export function withSecondOpinion<Spoken extends Counted>(
  utterance: Spoken | undefined,
  transcription: Transcription | undefined,
  elapsedMs: number,
): { readonly utterance: Spoken | undefined; readonly phrase?: SettlingPhrase } {
  if (utterance === undefined || transcription === undefined) return { utterance };
  const { words, phrase, asksForHelp = false } = transcription;
  return {
    utterance: keepsUp(transcription, elapsedMs, utterance.pauseMs)
      ? { ...utterance, words, isTranscribed: true, asksForHelp }
      : utterance,
    ...(phrase === undefined ? {} : { phrase }),
  };
}
