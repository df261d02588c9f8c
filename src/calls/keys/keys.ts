// Keys that a call presses, and the reports about them. Digits are personal data: events contain
// them, for people who may see the call, but logs never do.

/** rtp: telephone events (RFC 4733). info: one SIP INFO with `application/dtmf-relay` per key. */
export type KeyTransport = 'rtp' | 'info';

export type Keys = {
  /**
   * The command that presses the keys. Undefined for keys from the other end of a bridge, which are
   * not reported.
   */
  readonly commandId?: string;
  /** Characters `0-9A-D*#`, and `w` for a pause of half a second. */
  readonly digits: string;
  /** How long each key is pressed. */
  readonly durationMs: number;
};

/** Report of the keys of one command. */
export type KeysSent = {
  readonly commandId: string;
  /** The keys that were sent. */
  readonly digits: string;
  /** Whether every key was sent. */
  readonly complete: boolean;
};

/** A key that one end of a bridge pressed. */
export type PressedKey = {
  readonly digit: string;
  readonly durationMs: number | undefined;
  /** How the key reached the gateway. */
  readonly source: KeyTransport;
};

/** The end of a bridge that receives a key. */
export type KeyReceiver = {
  readonly transport: KeyTransport;
  /** Whether this end accepts keys as RTP events, according to its last SDP. */
  acceptsKeys(): boolean;
  press(keys: Keys): void;
};

/** Duration of a key if its INFO gives none (`application/dtmf`). */
const defaultMs = 100;
/** Shortest key that an exchange recognises (Q.24), and longest key of the command `dtmf`. */
const [minMs, maxMs] = [40, 5_000];

/**
 * Passes a key on to the other end. The media worker relays RTP events itself if the other leg
 * accepts them. This function handles keys that arrive as SIP INFO, and carriers that expect INFO.
 */
export function passKey(
  { digit, durationMs = defaultMs, source }: PressedKey,
  to: KeyReceiver,
): void {
  // Either the media worker relays the key, or the other end accepts no keys at all.
  if (source === 'rtp' && (to.acceptsKeys() || to.transport === 'rtp')) return;
  to.press({ digits: digit, durationMs: Math.min(Math.max(durationMs, minMs), maxMs) });
}
