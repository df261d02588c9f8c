// What a recogniser has understood so far. The detector treats it as a second opinion.

export type SettlingPhrase = 'voicemail-phrase' | 'call-screening';

export type Transcription = {
  readonly words: number;
  /** The point up to which the recogniser has listened, in ms of audio since the 200 OK. */
  readonly heardUntilMs: number;
  /** A phrase that people don't say after picking up. */
  readonly phrase?: SettlingPhrase;
  /** The latest text ends with an offer to help. */
  readonly asksForHelp?: boolean;
};

/**
 * Every recogniser lags a bit. If the lag exceeds this value, the recogniser's count is stale, so
 * the detector uses its own.
 */
const maxLagMs = 1_000;

/**
 * Returns true if the transcription covers everything that has been said so far, which means that
 * its words can replace the detector's own count.
 */
export function keepsUp(
  transcription: Transcription | undefined,
  elapsedMs: number,
  pauseMs: number,
): transcription is Transcription {
  // The detector has heard speech, so if the transcription doesn't contain any words, it isn't any
  // better than the detector's own count.
  if (transcription === undefined || transcription.words === 0) return false;
  return transcription.heardUntilMs >= Math.min(elapsedMs - maxLagMs, elapsedMs - pauseMs);
}

type Counted = { readonly words: number; readonly pauseMs: number };

/**
 * If the recogniser's words are current, returns the utterance with these words, and with the
 * phrase that decides the verdict. On a silent line, the transcription is ignored.
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
