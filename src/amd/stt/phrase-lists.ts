// The kinds of phrases that a language has. src/amd/stt/phrases has one file per language.

export type Phrases = {
  /**
   * Voicemail, full mailboxes, network announcements, queues.
   *
   * If one of these phrases is found in what a person says, Offhook hangs up on that person. If
   * none is found in a recording, the recording is judged by its sound. So a phrase is never a
   * single word, because a recogniser may mishear "Hello?" as any word. It is also nothing that a
   * person says after picking up:
   * - a receptionist: "may I have your name and the reason for your call?"
   * - a busy person: "I can't take your call now"
   * - a wrong number: "the number you called is wrong"
   * - a person who calls back: "I got your voicemail"
   * - a person who answers for another: "he is not available"
   */
  readonly voicemail: readonly string[];
  readonly callScreening: readonly string[];
  /**
   * "How may I help you?" If nothing follows, a person waits for an answer, however long the
   * greeting was.
   */
  readonly asksForHelp: readonly string[];
};
