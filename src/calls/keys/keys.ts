// Key presses that a call sends, and reports about them. The digits are personal data, so they must
// never be logged. Events do contain them, for people who are allowed to see the call.

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
  /** Duration of each key press. */
  readonly durationMs: number;
};

/** The result of one `press` command. */
export type KeysSent = {
  readonly commandId: string;
  /** The keys that have been sent. */
  readonly digits: string;
  /** False if some of the keys weren't sent. */
  readonly complete: boolean;
};

/** A key press from one end of a bridge. */
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
 * The shortest key press that exchanges recognise (Q.24), and the longest that the `dtmf` command
 * allows.
 */
const [minMs, maxMs] = [40, 5_000];

/**
 * Passes a key press on to the other end. The media worker itself relays RTP events if the other
 * leg accepts them. This function covers the rest: keys that arrive as SIP INFO, and carriers that
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
