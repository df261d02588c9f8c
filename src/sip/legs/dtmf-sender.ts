// Sends a key as a SIP INFO (RFC 6086, section 4). The body is `application/dtmf-relay`, the format
// that gateways adopted from Cisco.

import type { EngineLink } from '../engine/engine-link.ts';
import type { RequestOptions } from '../engine/srf-types.ts';
import type { Credentials } from '../trunks/routing.ts';
import { withCredentials } from './invite.ts';
import { transact } from './transaction.ts';

/**
 * Much shorter than the SIP stack's own time-out (64*T1), because after 5 s, a voice menu that was
 * waiting for the next key has moved on.
 */
const answerTimeoutMs = 5_000;

type Dialog = {
  readonly dialogId: string;
  /**
   * Remote target of the dialog. srf needs it to compute digest credentials. Undefined if unknown.
   */
  readonly requestUri: string | undefined;
  /** Used if the far end challenges the INFO. Undefined if the trunk has no credentials. */
  readonly credentials: Credentials | undefined;
  readonly isWanted: () => boolean;
};

/** Sends one key press, and returns whether the far end accepted the INFO. */
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
    timeoutMs: answerTimeoutMs,
  });
  return result.kind === 'response' && result.status < 300;
}
