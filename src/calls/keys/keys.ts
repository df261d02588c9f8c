// Keys that a call presses, and the reports about them. Digits are personal data. Events contain
// them for people who may see the call, but they must never be logged.

/** rtp: telephone events (RFC 4733). info: one SIP INFO with `application/dtmf-relay` per key. */
export type KeyTransport = 'rtp' | 'info';

export type Keys = {
  /**
   * The command that presses the keys. Undefined for keys relayed from the other end of a bridge,
   * which aren't reported.
   */
  readonly commandId?: string;
  /** `0-9A-D*#`, plus `w` for a 500 ms pause. */
  readonly digits: string;
  /** How long each key is pressed. */
  readonly durationMs: number;
};

/** Reports what became of one `press` command. */
export type KeysSent = {
  readonly commandId: string;
  /** The keys that were sent. */
  readonly digits: string;
  /** Whether every key was sent. */
  readonly complete: boolean;
};

/** A key pressed at one end of a bridge. */
export type PressedKey = {
  readonly digit: string;
  readonly durationMs: number | undefined;
  /** How the key reached the gateway. */
  readonly source: KeyTransport;
};

/** The end of a bridge that should receive a key. */
export type KeyReceiver = {
  readonly transport: KeyTransport;
  /** Whether this end accepts keys as RTP events, according to its last SDP. */
  acceptsKeys(): boolean;
  press(keys: Keys): void;
};

/** Duration of a key if its INFO doesn't contain one (`application/dtmf`). */
const defaultMs = 100;
/**
 * The shortest key that exchanges recognise (Q.24), and the longest key that the `dtmf` command
 * allows.
 */
const [minMs, maxMs] = [40, 5_000];

/**
 * Passes a key on to the other end. The media worker itself relays RTP events if the other leg
 * accepts them. This function covers the rest: keys that arrive as SIP INFO, and carriers that
 * expect INFO.
 */
export function passKey(
  { digit, durationMs = defaultMs, source }: PressedKey,
  to: KeyReceiver,
): void {
  // Either the media worker relays the key, or the other end doesn't accept keys at all.
  if (source === 'rtp' && (to.acceptsKeys() || to.transport === 'rtp')) return;
  to.press({ digits: digit, durationMs: Math.min(Math.max(durationMs, minMs), maxMs) });
}
