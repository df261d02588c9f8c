// Keys that a call presses: what is asked of the media worker, and what it tells of them. Digits are personal: in events for those
// who may see the call, never in a log.

/** rtp: telephone events (RFC 4733). info: SIP INFO, `application/dtmf-relay`, one a key. */
export type KeyTransport = 'rtp' | 'info';

export type Keys = {
  /** Of the command. Left out: the other end of a bridge has pressed them, and nothing is told of them. */
  readonly commandId?: string;
  /** `0-9A-D*#`, and `w`: half a second in which none is pressed. */
  readonly digits: string;
  /** Of each. */
  readonly durationMs: number;
};

/** Told once of all that were asked for together. */
export type KeysSent = {
  readonly commandId: string;
  /** Those that went out. */
  readonly digits: string;
  /** Every one of them. */
  readonly complete: boolean;
};

/** A key that one end of a bridge has pressed. */
export type PressedKey = {
  readonly digit: string;
  readonly durationMs: number | undefined;
  /** How it came. */
  readonly source: KeyTransport;
};

/** The other end. */
export type KeyTaker = {
  readonly transport: KeyTransport;
  /** As RTP events, by its last SDP. */
  takesKeys(): boolean;
  press(keys: Keys): void;
};

/** Of an INFO that says none (`application/dtmf`). */
const usualMs = 100;
/** What an exchange takes for a key at least (Q.24), and what the command `dtmf` may ask for at most. */
const [shortestMs, longestMs] = [40, 5_000];

/**
 * Passes a key on to the other end. What comes as RTP events goes from leg to leg in the media worker, where the other end takes such;
 * here goes what comes as SIP INFO, or to a carrier that wants INFO.
 */
export function passKey({ digit, durationMs = usualMs, source }: PressedKey, to: KeyTaker): void {
  // Passed on by the media worker, or nothing that this end understands.
  if (source === 'rtp' && (to.takesKeys() || to.transport === 'rtp')) return;
  to.press({ digits: digit, durationMs: Math.min(Math.max(durationMs, shortestMs), longestMs) });
}
