// Keys that a call presses: what is asked of the media worker, and what it tells of them. Digits are personal: in events for those
// who may see the call, never in a log.

/** rtp: telephone events (RFC 4733). info: SIP INFO, `application/dtmf-relay`, one a key. */
export type KeyTransport = 'rtp' | 'info';

export type Keys = {
  /** The command that presses them. Keys that the other end of a bridge pressed have no command, and nobody gets a report. */
  readonly commandId?: string;
  /** `0-9A-D*#`, and `w`, a pause of half a second. */
  readonly digits: string;
  /** How long each key is pressed. */
  readonly durationMs: number;
};

/** One report for all keys that were asked for together. */
export type KeysSent = {
  readonly commandId: string;
  /** The keys that went out. */
  readonly digits: string;
  /** Whether every key went out. */
  readonly complete: boolean;
};

/** A key that one end of a bridge has pressed. */
export type PressedKey = {
  readonly digit: string;
  readonly durationMs: number | undefined;
  /** How the key reached us. */
  readonly source: KeyTransport;
};

/** The other end of the bridge, which takes the key. */
export type KeyTaker = {
  readonly transport: KeyTransport;
  /** Whether it takes keys as RTP events, by its last SDP. */
  takesKeys(): boolean;
  press(keys: Keys): void;
};

/** The duration of a key whose INFO gives no duration (`application/dtmf`). */
const usualMs = 100;
/** What an exchange takes for a key at least (Q.24), and what the command `dtmf` may ask for at most. */
const [shortestMs, longestMs] = [40, 5_000];

/**
 * Passes a key on to the other end. The media worker itself relays RTP events to a leg that takes them. This function serves the
 * rest: keys that come as SIP INFO, and carriers that want INFO.
 */
export function passKey({ digit, durationMs = usualMs, source }: PressedKey, to: KeyTaker): void {
  // Passed on by the media worker, or nothing that this end understands.
  if (source === 'rtp' && (to.takesKeys() || to.transport === 'rtp')) return;
  to.press({ digits: digit, durationMs: Math.min(Math.max(durationMs, shortestMs), longestMs) });
}
