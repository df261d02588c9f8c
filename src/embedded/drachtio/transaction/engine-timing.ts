// The protocol's timers and the clock on which they're based. Tests can shorten the timers and
// simulate the clock.

export type SipTimers = {
  /** Estimate of the round trip (RFC 3261 section 17). */
  readonly t1Ms: number;
  /** Maximum interval between retransmissions. */
  readonly t2Ms: number;
  /** Maximum lifetime of a message in the network. */
  readonly t4Ms: number;
  /**
   * If this much time has passed since the last 1xx, the engine cancels the INVITE (sofia-sip's
   * timer C).
   */
  readonly timerCMs: number;
  /** The application must send its final response to an inbound INVITE within this time. */
  readonly inviteAnswerMs: number;
  /** We reject any shorter session interval with 422 (RFC 4028 section 5). */
  readonly minSessionSeconds: number;
  /**
   * Length of a second in Session-Expires. The RFC's minimum is 90 s, which is too long for tests,
   * so they shorten the second.
   */
  readonly sessionSecondMs: number;
  /** A SIP connection is closed after this time without traffic. */
  readonly tcpIdleMs: number;
  /**
   * The corresponding time for a SIP connection that hasn't sent a whole message yet, or is in the
   * middle of the next one.
   */
  readonly tcpPartialMs: number;
  /** A TLS connection must be up within this time, including TCP's and TLS's handshakes. */
  readonly tlsHandshakeMs: number;
  /** Interval between TCP's own probes on a TLS connection that is otherwise silent. */
  readonly tlsKeepAliveMs: number;
  /** Interval between CRLF keep-alives on a connection whose trunk asks for them. */
  readonly keepAliveMs: number;
  /** If nothing arrives for this long after a keep-alive, the connection is dead. */
  readonly pongMs: number;
  /** An application must authenticate within this time after opening a control connection. */
  readonly authenticateMs: number;
  /** A connected UDP socket is closed if it hasn't sent anything for this long. */
  readonly udpIdleMs: number;
  /** If an application has disconnected, we hang up its confirmed dialogs after this time. */
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
  // TCP repeats a lost SYN after 1 and 3 s. Together with a look-up of 5 s, this stays below the
  // time in which an application expects a reply to its command.
  tlsHandshakeMs: 4_000,
  tlsKeepAliveMs: 60_000,
  // Below 30 s, after which the shortest-lived NAT bindings expire (RFC 5626 section 4.4.2). A dead
  // connection is noticed 35 s later at most.
  keepAliveMs: 25_000,
  // RFC 5626 section 4.4.1.
  pongMs: 10_000,
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
  /** Milliseconds since the epoch, including fractions. */
  now(): number;
  setTimer(callback: () => void, delayMs: number): TimerHandle;
  clearTimer(handle: TimerHandle | undefined): void;
};

/**
 * A timer of this length or more waits until nothing can arrive any more, e.g. for 64 * T1. It may
 * be up to a second late, so it fires together with the others of that second, and the engine's
 * thread wakes once for all of them.
 */
const longFromMs = 16_000;
const longStepMs = 1_000;

function now(): number {
  return performance.timeOrigin + performance.now();
}

export const systemClock: EngineClock = {
  now,
  setTimer: (callback, delayMs) => {
    const handle = setTimeout(callback, delayMs < longFromMs ? delayMs : toWholeStep(delayMs));
    return handle;
  },
  clearTimer: (handle) => {
    if (handle !== undefined) clearTimeout(handle as NodeJS.Timeout);
  },
};

/** Lengthens the delay so that it ends at a whole second. */
function toWholeStep(delayMs: number): number {
  const endsAt = now() + delayMs;
  return Math.ceil(delayMs + longStepMs - (endsAt % longStepMs));
}

/** Formats the time field in drachtio's protocol, `HH:MM:SS.uuuuuu` in UTC. */
export function formatTimeOfDay(nowMs: number): string {
  const iso = new Date(nowMs).toISOString();
  const micros = Math.floor((nowMs % 1) * 1_000);
  return `${iso.slice(11, 23)}${String(micros).padStart(3, '0')}`;
}
