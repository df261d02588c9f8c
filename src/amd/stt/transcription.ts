// What a recogniser made of the speech so far, as the detector takes it: a second opinion on the words. Pure.

export type SettlingPhrase = 'voicemail-phrase' | 'call-screening';

export type Transcription = {
  readonly words: number;
  /** How far into the call, by the sample clock, the recogniser has listened. */
  readonly heardUntilMs: number;
  /** Something that no person says who picks up. */
  readonly phrase?: SettlingPhrase;
  /** The last that was said is an offer to help. */
  readonly asksForHelp?: boolean;
};

/** A recogniser is behind by its latency, always; by more than this its count is stale and ours is taken. */
const longestLagMs = 1_000;

/** Does this opinion cover what was said by now? Then its words are counted instead of ours. */
export function keepsUp(
  transcription: Transcription | undefined,
  elapsedMs: number,
  pauseMs: number,
): transcription is Transcription {
  // No words where speech was heard is no better a count than ours.
  if (transcription === undefined || transcription.words === 0) return false;
  return transcription.heardUntilMs >= Math.min(elapsedMs - longestLagMs, elapsedMs - pauseMs);
}

type Counted = { readonly words: number; readonly pauseMs: number };

/** The utterance with the words that count, and the phrase that settles it. Nothing is believed of a silent line. */
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
