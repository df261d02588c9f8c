// Keys that a call presses: what the media worker gets, and what it reports. Digits are personal
// data. They are in events, for people who may see the call, and never in a log.

/**
 * rtp: telephone events (RFC 4733). info: SIP INFO with `application/dtmf-relay`, one for each key.
 */
export type KeyTransport = 'rtp' | 'info';

export type Keys = {
  /**
   * The command that presses the keys. Undefined for keys that the other end of a bridge pressed:
   * nobody gets a report of those.
   */
  readonly commandId?: string;
  /** `0-9A-D*#`, and `w`, a pause of half a second. */
  readonly digits: string;
  /** How long each key is pressed. */
  readonly durationMs: number;
};

/** The report of all keys of one command. */
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
  /** How the key reached the gateway. */
  readonly source: KeyTransport;
};

/** The other end of the bridge, which takes the key. */
export type KeyReceiver = {
  readonly transport: KeyTransport;
  /** Whether it takes keys as RTP events, according to its last SDP. */
  acceptsKeys(): boolean;
  press(keys: Keys): void;
};

/** The duration of a key whose INFO gives no duration (`application/dtmf`). */
const defaultMs = 100;
/**
 * The shortest key that an exchange recognises (Q.24), and the longest that the command `dtmf` may
 * ask for.
 */
const [minMs, maxMs] = [40, 5_000];

/**
 * Passes a key on to the other end. The media worker itself relays RTP events to a leg that takes
 * them. This function serves the rest: keys that come as SIP INFO, and carriers that want INFO.
 */
export function passKey(
  { digit, durationMs = defaultMs, source }: PressedKey,
  to: KeyReceiver,
): void {
  // The media worker passes it on, or this end understands no keys.
  if (source === 'rtp' && (to.acceptsKeys() || to.transport === 'rtp')) return;
  to.press({ digits: digit, durationMs: Math.min(Math.max(durationMs, minMs), maxMs) });
}
