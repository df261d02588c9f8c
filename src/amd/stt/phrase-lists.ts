// What the lists of a language are: its phrases are beside each other in src/amd/stt/phrases.

export type Phrases = {
  /**
   * Voicemail, full mailboxes, announcements of the network, queues. A person of whom one is found is hung up on; a recording
   * of which none is found is judged by its sound. So no single word, as "Hello?" may be heard as any, and nothing that people say who pick up: a receptionist ("may I have your
   * name and the reason for your call?"), one who is busy ("I can't take your call now"), who was called by mistake ("the number
   * you called is wrong"), calls back ("I got your voicemail"), or answers for another ("he is not available").
   */
  readonly voicemail: readonly string[];
  readonly callScreening: readonly string[];
  /** "How may I help you?": with nothing after it a person waits for an answer, however long the greeting was. */
  readonly asksForHelp: readonly string[];
};
