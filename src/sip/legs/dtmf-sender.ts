// Sends a key in a SIP INFO (RFC 6086, section 4). The body is `application/dtmf-relay`, the form
// that gateways took from Cisco.

import type { EngineLink } from '../engine/engine-link.ts';
import type { RequestOptions } from '../engine/srf-types.ts';
import type { Credentials } from '../trunks/routing.ts';
import { withCredentials } from './invite.ts';
import { transact } from './transaction.ts';

/**
 * Bounds the wait for the answer to an INFO. It is much shorter than the time-out of the SIP stack
 * (64*T1). By then a menu that waits for the next key has gone on.
 */
const longestAnswerMs = 5_000;

type Dialog = {
  readonly dialogId: string;
  /**
   * Remote target of the dialog, for which digest credentials are computed. Undefined if unknown.
   */
  readonly requestUri: string | undefined;
  /** Answers a far end that challenges the INFO. Undefined if the trunk has none configured. */
  readonly credentials: Credentials | undefined;
  readonly isWanted: () => boolean;
};

/** Presses a key. Returns true if the far end accepted the INFO. */
export async function pressByInfo(
  link: EngineLink,
  { dialogId, requestUri, credentials, isWanted }: Dialog,
  { digit, durationMs }: { readonly digit: string; readonly durationMs: number },
): Promise<boolean> {
  const request: RequestOptions = {
    method: 'INFO',
    stackDialogId: dialogId,
    ...(requestUri === undefined ? {} : { uri: requestUri }),
    headers: { 'Content-Type': 'application/dtmf-relay' },
    body: `Signal=${digit}\r\nDuration=${durationMs}\r\n`,
  };
  const answerable =
    credentials === undefined
      ? request
      : withCredentials(request, credentials, { isWanted, onTooLarge: () => undefined });
  const result = await transact(link, answerable, {
    until: 'answered',
    timeoutMs: longestAnswerMs,
  });
  return result.kind === 'response' && result.status < 300;
}
