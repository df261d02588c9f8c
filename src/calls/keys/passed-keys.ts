// Keys that one end of a bridge presses, passed on to the other. What comes as RTP events (RFC 4733) goes from leg to leg in the media
// worker, where the other end takes such; here goes what comes as SIP INFO, or to a carrier that wants INFO.

import type { KeyTransport } from '../ports.ts';
import type { Keys } from './keys.ts';

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

export function passKey({ digit, durationMs = usualMs, source }: PressedKey, to: KeyTaker): void {
  // Passed on by the media worker, or nothing that this end understands.
  if (source === 'rtp' && (to.takesKeys() || to.transport === 'rtp')) return;
  to.press({ digits: digit, durationMs: Math.min(Math.max(durationMs, shortestMs), longestMs) });
}
