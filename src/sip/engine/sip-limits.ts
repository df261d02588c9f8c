// Limits for everything that the SIP layer waits for or keeps. Drachtio-srf itself never gives up:
// after a lost reply, its promise never settles. Therefore each wait has its own time-out here.

export type SipLimits = {
  /** Time for the TCP connect and the authentication of a control connection. */
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
   * Time for the engine's OK to an INVITE. It usually takes a millisecond, so a missing OK means a
   * lost frame.
   */
  readonly confirmTimeoutMs: number;
  /**
   * Time from `answered` to `acknowledge()`, in which the leg is stored. The far end repeats its
   * 200 for 32 s (RFC 3261, 13.3.1.4).
   */
  readonly acknowledgeTimeoutMs: number;
  /** Time for the final response to a BYE. The engine generates a 408 after 32 s (timer F). */
  readonly byeTimeoutMs: number;
  /**
   * Time for the final response to an INVITE, cancelled or not. drachtio itself cancels after 185
   * s, and generates a 408 at most 32 s later.
   */
  readonly followTimeoutMs: number;
  /** Total time that `endOrphan` takes for one leg. */
  readonly orphanTimeoutMs: number;
  /** Wait after an orphan's CANCEL. A 200 that crossed the CANCEL has usually arrived by then. */
  readonly crossingMs: number;
  /**
   * How long after its CANCEL an abandoned leg is still checked for a late 200. A callee repeats
   * its 200 for 64*T1.
   */
  readonly lateAnswerMs: number;
  /** Time to resolve the host name of a `sip:` target. */
  readonly resolveTimeoutMs: number;
  /** Time for the final response to a REGISTER. Then the REGISTER counts as failed. */
  readonly registerTimeoutMs: number;
  /** Pause after a REGISTER that failed. */
  readonly registerRetryMs: number;
  /** Shortest pause between two REGISTERs, even if a registrar grants less time. */
  readonly registerMinRefreshMs: number;
  /** How long disposal waits for the answers to BYEs and CANCELs. */
  readonly disposeTimeoutMs: number;
  /**
   * Largest number of abandoned legs that are kept to be ended later, and how long each is kept.
   * After `abandonedForMs`, the far end has given up on its own.
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
 * Size of the largest control frame that the gateway sends. Drachtio-server appends reads of up to
 * 8,192 bytes to a ring of 12,228 bytes, and overwrites the oldest bytes if they do not fit. The
 * connection then stalls for good without any message. The bytes that an incomplete frame leaves in
 * the ring must therefore stay below the difference.
 */
export const maxFrameBytes = 12_228 - 8_192;
