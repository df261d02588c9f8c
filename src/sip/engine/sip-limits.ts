// Bounds of everything that the SIP layer waits for or keeps. Drachtio-srf itself gives up nothing: a lost reply is a
// promise that never settles, so each wait here has its own end.

export type SipLimits = {
  /** TCP connect and authentication of one control connection. */
  readonly connectTimeoutMs: number;
  readonly pingIntervalMs: number;
  /** A pong that is missing this long: the connection is broken. Several intervals, so that one busy second does not kill calls. */
  readonly pongTimeoutMs: number;
  readonly reconnectMinMs: number;
  readonly reconnectMaxMs: number;
  /** The engine's OK to an INVITE. It answers in a millisecond; a missing answer means a lost frame. */
  readonly confirmTimeoutMs: number;
  /** From `answered` to `acknowledge()`: storing the leg. The far end repeats its 200 for 32 s (RFC 3261, 13.3.1.4). */
  readonly acknowledgeTimeoutMs: number;
  /** Final response to a BYE: the engine makes up a 408 after 32 s (timer F). */
  readonly byeTimeoutMs: number;
  /** Final response to a cancelled INVITE: drachtio cancels by itself at 185 s and makes up a 408 32 s later at most. */
  readonly followTimeoutMs: number;
  /** Everything that `endOrphan` does for one leg. */
  readonly orphanTimeoutMs: number;
  /** A 200 that crossed an orphan's CANCEL has mostly arrived by then. */
  readonly crossingMs: number;
  /** The final response to an orphan's INVITE is asked for this long after its CANCEL: a 200 is repeated for 64*T1. */
  readonly lateAnswerMs: number;
  /** Resolving a host name that a `sip:` target names. */
  readonly resolveTimeoutMs: number;
  /** Final response to a REGISTER; then it is sent again. */
  readonly registerTimeoutMs: number;
  /** After a REGISTER that failed. */
  readonly registerRetryMs: number;
  /** A registrar that grants less is asked no more often than this. */
  readonly registerMinRefreshMs: number;
  /** How long disposal waits for BYEs and CANCELs to be answered. */
  readonly disposeTimeoutMs: number;
  /** Abandoned legs, which are ended when their engine is back; older ones the far end has given up by itself. */
  readonly abandonedLegs: number;
  readonly abandonedForMs: number;
  readonly abandonedSweepMs: number;
  /** An engine that is not back by then is given up, and another one, or another process, ends what it left up. */
  readonly takeOverAfterMs: number;
};

export const defaultSipLimits: SipLimits = {
  connectTimeoutMs: 5_000,
  pingIntervalMs: 2_000,
  pongTimeoutMs: 6_000,
  reconnectMinMs: 100,
  // People are left in calls that only this connection can end.
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
 * Largest control frame that is ever sent. Drachtio-server appends reads of up to 8,192 bytes to a ring of 12,228 bytes
 * and overwrites the oldest bytes when they do not fit; the connection then stalls for good, without a word. What
 * can be left in the ring from a frame that is still incomplete must therefore stay below the difference.
 */
export const maxFrameBytes = 12_228 - 8_192;
