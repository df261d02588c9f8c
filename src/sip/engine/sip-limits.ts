// Bounds of everything that the SIP layer waits for or keeps. Drachtio-srf itself never gives up: a
// lost reply is a promise that never settles. Therefore each wait has its own time-out here.

export type SipLimits = {
  /** TCP connect and authentication of one control connection. */
  readonly connectTimeoutMs: number;
  readonly pingIntervalMs: number;
  /**
   * If a pong is missing for this long, the connection counts as broken. It spans several ping
   * intervals, so that one busy second does not end calls.
   */
  readonly pongTimeoutMs: number;
  readonly reconnectMinMs: number;
  readonly reconnectMaxMs: number;
  /**
   * The engine's OK to an INVITE. The engine answers within a millisecond, so a missing answer
   * means a lost frame.
   */
  readonly confirmTimeoutMs: number;
  /**
   * From `answered` to `acknowledge()`, while the leg is stored. The far end repeats its 200 for 32
   * s (RFC 3261, 13.3.1.4).
   */
  readonly acknowledgeTimeoutMs: number;
  /** Final response to a BYE. The engine makes up a 408 after 32 s (timer F). */
  readonly byeTimeoutMs: number;
  /**
   * Final response to a cancelled INVITE. drachtio cancels by itself at 185 s, and makes up a 408
   * at most 32 s later.
   */
  readonly followTimeoutMs: number;
  /** Everything that `endOrphan` does for one leg. */
  readonly orphanTimeoutMs: number;
  /** Wait after an orphan's CANCEL. A 200 that crossed the CANCEL has usually arrived by then. */
  readonly crossingMs: number;
  /**
   * How long after its CANCEL an abandoned leg is still checked for a late 200. A callee repeats
   * its 200 for 64*T1.
   */
  readonly lateAnswerMs: number;
  /** Resolution of the host name of a `sip:` target. */
  readonly resolveTimeoutMs: number;
  /** Final response to a REGISTER. Then the REGISTER is sent again. */
  readonly registerTimeoutMs: number;
  /** Pause after a REGISTER that failed. */
  readonly registerRetryMs: number;
  /** Shortest pause between two REGISTERs, even if a registrar grants less time. */
  readonly registerMinRefreshMs: number;
  /** How long disposal waits for the answers to BYEs and CANCELs. */
  readonly disposeTimeoutMs: number;
  /**
   * Largest number of abandoned legs that are kept to be ended later, and how long each is kept.
   * After `abandonedForMs` the far end has given up by itself.
   */
  readonly abandonedLegs: number;
  readonly abandonedForMs: number;
  readonly abandonedSweepMs: number;
  /**
   * If an engine is not back by then, another engine or another process ends the legs that it left
   * up.
   */
  readonly takeOverAfterMs: number;
};

export const defaultSipLimits: SipLimits = {
  connectTimeoutMs: 5_000,
  pingIntervalMs: 2_000,
  pongTimeoutMs: 6_000,
  reconnectMinMs: 100,
  // Short, because people are left in calls that only this connection can end.
  reconnectMaxMs: 1_000,
  confirmTimeoutMs: 10_000,
  acknowledgeTimeoutMs: 5_000,
  byeTimeoutMs: 35_000,
  followTimeoutMs: 220_000,
  orphanTimeoutMs: 5_000,
  crossingMs: 500,
  lateAnswerMs: 32_000,
  resolveTimeoutMs: 5_000,
  registerTimeoutMs: 10_000,
  registerRetryMs: 30_000,
  registerMinRefreshMs: 5_000,
  disposeTimeoutMs: 800,
  abandonedLegs: 10_000,
  abandonedForMs: 600_000,
  abandonedSweepMs: 1_000,
  takeOverAfterMs: 3_000,
};

/**
 * Largest control frame that is ever sent. Drachtio-server appends reads of up to 8,192 bytes to a
 * ring of 12,228 bytes, and overwrites the oldest bytes if they do not fit. The connection then
 * stalls for good without any message. The bytes that an incomplete frame leaves in the ring must
 * therefore stay below the difference.
 */
export const maxFrameBytes = 12_228 - 8_192;
