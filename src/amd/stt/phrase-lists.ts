// What the lists of a language are: its phrases are beside each other in src/amd/stt/phrases.

export type Phrases = {
  /**
   * Voicemail, full mailboxes, announcements of the network, queues. What a receptionist might say ("would you like to leave
   * a message?", "may I ask who is calling?", "she is not available") must not be here.
   */
  readonly voicemail: readonly string[];
  readonly callScreening: readonly string[];
  /** "How may I help you?": with nothing after it somebody waits for an answer, however long the greeting was. */
  readonly asksForHelp: readonly string[];
  /** What hardly a person says who picks up. It settles nothing by itself: a silence after it is no person who waits. */
  readonly recorded: readonly string[];
  /** Beginnings of words that machines use; two different ones are as good as such a phrase, whatever was misheard between. */
  readonly machineWords: readonly string[];
};
