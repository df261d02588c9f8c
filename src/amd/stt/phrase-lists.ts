// The phrase lists of one language. src/amd/stt/phrases has one file per language.

export type Phrases = {
  /**
   * Voicemail, full mailboxes, network announcements, queues.
   *
   * A phrase that matches what a person says makes Offhook hang up on that person. A recording
   * without any of the phrases is still judged by its sound. So when in doubt, leave a phrase out.
   * A phrase must not be a single word, because a recogniser may mishear "Hello?" as any word. It
   * must not be something that a person says after picking up:
   * - a receptionist: "may I have your name and the reason for your call?"
   * - a busy person: "I can't take your call now"
   * - a wrong number: "the number you called is wrong"
   * - a person who calls back: "I got your voicemail"
   * - a person who answers for another: "he is not available"
   */
  readonly voicemail: readonly string[];
  readonly callScreening: readonly string[];
  /**
   * "How may I help you?" If nothing follows, a person is waiting for an answer, however long the
   * greeting was.
   */
  readonly asksForHelp: readonly string[];
};
