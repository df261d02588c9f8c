// Sends a key as a SIP INFO (RFC 6086, section 4). The body is `application/dtmf-relay`, the format
// that gateways adopted from Cisco.

import type { Authentication } from '../digest/answered-request.ts';
import type { EngineLink } from '../engine/engine-link.ts';
import type { RequestOptions } from '../engine/srf-types.ts';
import { transact } from './transaction.ts';

/**
 * Much shorter than the SIP stack's own time-out (64*T1), because after 5 s, a voice menu that was
 * waiting for the next key has moved on.
 */
const answerTimeoutMs = 5_000;

type Dialog = {
  readonly dialogId: string;
  /** Used if the far end challenges the INFO. */
  readonly authentication: Authentication;
};

/** Sends one key press, and returns whether the far end accepted the INFO. */
export async function pressByInfo(
  link: EngineLink,
  { dialogId, authentication }: Dialog,
  { digit, durationMs }: { readonly digit: string; readonly durationMs: number },
): Promise<boolean> {
  const request: RequestOptions = {
    method: 'INFO',
    stackDialogId: dialogId,
    headers: { 'Content-Type': 'application/dtmf-relay' },
    body: `Signal=${digit}\r\nDuration=${durationMs}\r\n`,
  };
  let isOver = false;
  // A key that is repeated after we gave up on it would reach the next menu.
  const isWanted = () => !isOver && authentication.isWanted?.() !== false;
  const result = await transact(link, request, {
    until: 'answered',
    timeoutMs: answerTimeoutMs,
    authentication: { ...authentication, isWanted },
  });
  isOver = true;
  return result.kind === 'response' && result.status < 300;
}
