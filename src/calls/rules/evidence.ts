// What a call's record keeps besides the columns of the call: facts that the machine notes during
// the call and stores with its end. They outlive the call's events, so each is short.

/** The sound that was played, so that its exact audio can be identified years later. */
export type PlayedSound = {
  /** `sound:<name>`, or the URL without its query. */
  readonly name: string;
  /**
   * SHA-256 of the 8 kHz µ-law audio, in hexadecimal digits. Omitted if another process played the
   * sound and died before the end of the call: events name sounds, but don't contain their hash.
   */
  readonly sha256?: string;
};

/** To whom or what the person was connected. */
export type Connection = {
  readonly with: 'bot' | 'agent';
  /** When the bot received the audio, or when the agent answered. */
  readonly at: string;
  /** `tel:` or `sip:` URI of the agent. */
  readonly to?: string;
};

export type CallEvidence = {
  /** The different sounds that were played, in the order in which they first began. */
  readonly sounds?: readonly PlayedSound[];
  /** The first bot, and each agent. */
  readonly connections?: readonly Connection[];
};
