// The codes with which detection explains its events. They travel as text, because a reader may be
// older than the writer. A reason that rests on words may end in `-transcription-late`, … as well.

/** Why somebody was taken for a person or a machine, or for neither. */
export const verdictReasons = [
  'short-greeting',
  'greeting-then-silence',
  'word-count',
  'long-greeting',
  'dense-speech',
  'many-words',
  'several-sentences',
  'voicemail-phrase',
  'call-screening',
  'tone',
  'fax-tone',
  'sit-tone',
  'no-speech',
  'undecided',
] as const;
export type VerdictReason = (typeof verdictReasons)[number];

/** Why detection failed. */
export const detectionFaults = [
  'audio-unheard',
  'detector-failed',
  'media-lost',
  'media-failed',
] as const;
export type DetectionFault = (typeof detectionFaults)[number];

/** What ended a machine's greeting (`silence`, `tone`), and what the tone was (`beep`). */
export const greetingReasons = ['silence', 'tone', 'beep'] as const;
export type GreetingReason = (typeof greetingReasons)[number];

/** Why detection stopped, apart from its faults. */
export const detectionStops = [
  'human',
  'tone',
  'fax-tone',
  'no-speech',
  'decision-timeout',
  'greeting-timeout',
  'tone-timeout',
  'human-after-screening',
  'machine-after-screening',
  'nobody-after-screening',
  'screened',
  'plans-over',
  'error',
  'call-ended',
  'session-closed',
  'gateway-restarted',
  'gateway-lost',
  'gateway-failed',
  'recording-ended',
] as const;
export type DetectionStop = (typeof detectionStops)[number];

export type AmdReason = VerdictReason | DetectionFault | GreetingReason | DetectionStop;
