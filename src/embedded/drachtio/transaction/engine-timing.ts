// The protocol's timers and the clock that they run on. Tests can shorten the timers and simulate
// the clock.

export type SipTimers = {
  /** Estimate of the round trip (RFC 3261 section 17). */
  readonly t1Ms: number;
  /** Maximum interval between retransmissions. */
  readonly t2Ms: number;
  /** Maximum lifetime of a message in the network. */
  readonly t4Ms: number;
  /**
   * How long an INVITE may ring after its last 1xx before the engine cancels it (sofia-sip's timer
   * C).
   */
  readonly timerCMs: number;
  /** How long an inbound INVITE may wait for the application's final answer. */
  readonly inviteAnswerMs: number;
  /** We reject shorter session intervals with 422 (RFC 4028 section 5). */
  readonly minSessionSeconds: number;
  /**
   * Length of a second in Session-Expires. Tests shorten it, because they can't wait for the RFC's
   * 90 s.
   */
  readonly sessionSecondMs: number;
  /** A SIP connection without traffic is closed after this time. */
  readonly tcpIdleMs: number;
  /**
   * The same for a SIP connection that hasn't sent a whole message yet, or is halfway through the
   * next one.
   */
  readonly tcpPartialMs: number;
  /** A control connection must authenticate within this time. */
  readonly authenticateMs: number;
  /** A connected UDP socket that hasn't sent anything for this long is closed. */
  readonly udpIdleMs: number;
  /** A confirmed dialog whose application has disconnected is hung up after this time. */
  readonly ownerlessMs: number;
};

export const defaultSipTimers: SipTimers = {
  t1Ms: 500,
  t2Ms: 4_000,
  t4Ms: 5_000,
  timerCMs: 185_000,
  inviteAnswerMs: 600_000,
  minSessionSeconds: 90,
  sessionSecondMs: 1_000,
  tcpIdleMs: 600_000,
  tcpPartialMs: 30_000,
  authenticateMs: 10_000,
  udpIdleMs: 120_000,
  ownerlessMs: 7_200_000,
};

/** Timers B, F, H, J, L and M are all 64 * T1 (RFC 3261). */
export function transactionLifeMs(timers: SipTimers): number {
  return 64 * timers.t1Ms;
}

export type TimerHandle = object;

export type EngineClock = {
  /** Milliseconds since the epoch, with fractions. */
  now(): number;
  setTimer(callback: () => void, delayMs: number): TimerHandle;
  clearTimer(handle: TimerHandle | undefined): void;
};

export const systemClock: EngineClock = {
  now: () => performance.timeOrigin + performance.now(),
  setTimer: (callback, delayMs) => {
    const handle = setTimeout(callback, delayMs);
    return handle;
  },
  clearTimer: (handle) => {
    if (handle !== undefined) clearTimeout(handle as NodeJS.Timeout);
  },
};

/** Writes `HH:MM:SS.uuuuuu` in UTC, the time field of drachtio's protocol. */
export function formatTimeOfDay(nowMs: number): string {
  const iso = new Date(nowMs).toISOString();
  const micros = Math.floor((nowMs % 1) * 1_000);
  return `${iso.slice(11, 23)}${String(micros).padStart(3, '0')}`;
}
