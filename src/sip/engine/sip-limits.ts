// Time-outs and other limits of the SIP layer. Every wait needs its own time-out, because
// drachtio-srf itself never gives up: if a reply gets lost, srf's promise never settles.

export type SipLimits = {
  /** Time for the TCP connect and the authentication of a control connection. */
  readonly connectTimeoutMs: number;
  readonly pingIntervalMs: number;
  /**
   * If a pong hasn't arrived for this long, we consider the connection broken. That's several ping
   * intervals, because one busy second shouldn't end calls.
   */
  readonly pongTimeoutMs: number;
  readonly reconnectMinMs: number;
  readonly reconnectMaxMs: number;
  /**
   * Time for the engine to confirm an INVITE with OK. That usually takes a millisecond, so if
   * there's still no OK by then, a frame was lost.
   */
  readonly confirmTimeoutMs: number;
  /**
   * Time from `answered` to `acknowledge()`, in which the leg is stored. The far end repeats its
   * 200 for 32 s (RFC 3261, 13.3.1.4).
   */
  readonly acknowledgeTimeoutMs: number;
  /**
   * Time for the final response to a BYE. The engine itself generates a 408 after 32 s (timer F).
   */
  readonly byeTimeoutMs: number;
  /**
   * Time for the final response to an INVITE, cancelled or not. drachtio itself sends a CANCEL
   * after 185 s, and generates a 408 at most 32 s later.
   */
  readonly followTimeoutMs: number;
  /** Total time that `endOrphan` may spend on one leg. */
  readonly orphanTimeoutMs: number;
  /** Pause after an orphan's CANCEL. A 200 that crossed the CANCEL has usually arrived by then. */
  readonly crossingMs: number;
  /**
   * After the CANCEL, we keep checking an abandoned leg for a late 200 for this long, because
   * callees repeat their 200 for 64*T1.
   */
  readonly lateAnswerMs: number;
  /** Time to resolve the host name of a `sip:` target. */
  readonly resolveTimeoutMs: number;
  /** Time for the final response to a REGISTER. If none arrives, the REGISTER has failed. */
  readonly registerTimeoutMs: number;
  /** Interval between OPTIONS to a trunk with `keepalive: options`. */
  readonly keepAliveMs: number;
  /** Pause after a failed REGISTER. */
  readonly registerRetryMs: number;
  /** Shortest pause between two REGISTERs, even if a registrar grants less time. */
  readonly registerMinRefreshMs: number;
  /** Time that disposal waits for the responses to BYEs and CANCELs. */
  readonly disposeTimeoutMs: number;
  /**
   * Bounds the list of abandoned legs that we keep in order to end them later. Each of them is kept
   * for `abandonedForMs`, after which the far end has given up on its own.
   */
  readonly abandonedLegs: number;
  readonly abandonedForMs: number;
  readonly abandonedSweepMs: number;
  /**
   * Time to wait for a lost engine. After that, another engine or another process ends the lost
   * engine's legs.
   */
  readonly takeOverAfterMs: number;
};

export const defaultSipLimits: SipLimits = {
  connectTimeoutMs: 5_000,
  pingIntervalMs: 2_000,
  pongTimeoutMs: 6_000,
  reconnectMinMs: 100,
  // Short, because there may be people in calls that only this connection can end.
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
  // UDP bindings of a NAT last at least 30 s (RFC 5626, section 4.4.2).
  keepAliveMs: 25_000,
  registerRetryMs: 30_000,
  registerMinRefreshMs: 5_000,
  disposeTimeoutMs: 800,
  abandonedLegs: 10_000,
  abandonedForMs: 600_000,
  abandonedSweepMs: 1_000,
  takeOverAfterMs: 3_000,
};

/**
 * Maximum size of a control frame that we send. Drachtio-server appends reads of up to 8,192 bytes
 * to a 12,228-byte ring, and overwrites the oldest bytes if a read doesn't fit. The connection then
 * stalls for good, and nothing is logged. To prevent that, the part of an incomplete frame that
 * remains in the ring must be smaller than the difference between the two sizes.
 */
export const maxFrameBytes = 12_228 - 8_192;
