// The phrase lists for one language. There's one file per language in src/amd/stt/phrases.

export type Phrases = {
  /**
   * Voicemail, full mailboxes, network announcements, queues.
   *
   * If a phrase matches what a person says, Offhook hangs up on that person. On the other hand, a
   * recording that contains none of the phrases is still judged by its sound, so when in doubt,
   * leave a phrase out. A phrase mustn't be a single word, because a recogniser may mishear
   * "Hello?" as just about anything. Nor may it be something that a person says after picking up:
   * - a receptionist: "may I have your name and the reason for your call?"
   * - a busy person: "I can't take your call now"
   * - a wrong number: "the number you called is wrong"
   * - a person who calls back: "I got your voicemail"
   * - a person who answers somebody else's phone: "he is not available"
   */
  readonly voicemail: readonly string[];
  readonly callScreening: readonly string[];
  /**
   * Phrases that count only as the first words of the call. A person who asks for a name or offers
   * to take a message says hello, a name or a business first.
   */
  readonly voicemailFirst?: readonly string[];
  readonly callScreeningFirst?: readonly string[];
  /**
   * "How may I help you?" If nothing follows, a person is waiting for an answer, no matter how long
   * the greeting was.
   */
  readonly asksForHelp: readonly string[];
  /**
   * What recordings say and people say too, in groups of the same meaning. Two groups together are
   * a recording: "you have reached …" and "leave a message". One of them may be misheard.
   */
  readonly cues?: readonly (readonly string[])[];
  /** Cues don't count beside these: the speaker is a person who answers for another, or asks. */
  readonly saidBesideCues?: readonly string[];
  /** What `#` in a phrase may match, besides a digit. */
  readonly digits?: readonly string[];
};
