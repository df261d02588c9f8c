// What a recogniser has understood so far. The detector uses it as a second opinion.

export type SettlingPhrase = 'voicemail-phrase' | 'call-screening';

export type Transcription = {
  readonly words: number;
  /** How far the recogniser has listened, in ms of audio since the 200 OK. */
  readonly heardUntilMs: number;
  /** A phrase that people don't say after picking up. */
  readonly phrase?: SettlingPhrase;
  /** The latest text ends with an offer to help. */
  readonly asksForHelp?: boolean;
};

/**
 * Every recogniser lags a bit. If it lags by more than this, its count is stale and the detector
 * uses its own.
 */
const maxLagMs = 1_000;

/**
 * Returns true if the transcription covers everything said so far, so its words can replace the
 * detector's own count.
 */
export function keepsUp(
  transcription: Transcription | undefined,
  elapsedMs: number,
  pauseMs: number,
): transcription is Transcription {
  // The detector has heard speech, so a transcription without words isn't any better than its own
  // count.
  if (transcription === undefined || transcription.words === 0) return false;
  return transcription.heardUntilMs >= Math.min(elapsedMs - maxLagMs, elapsedMs - pauseMs);
}

type Counted = { readonly words: number; readonly pauseMs: number };

/**
 * Returns the utterance with the recogniser's words if they are current, and the phrase that
 * decides the verdict. Ignores the transcription on a silent line.
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
