// A key in a SIP INFO of ours (RFC 6086 section 4, in the form that gateways took from Cisco): `application/dtmf-relay`.

import type { EngineLink } from '../engine/engine-link.ts';
import type { RequestOptions } from '../engine/srf-types.ts';
import type { Credentials } from '../trunks/routing.ts';
import { withCredentials } from './invite.ts';
import { transact } from './transaction.ts';

/** Long before the stack gives a request up (64*T1): a menu that waits for the next key has gone on by then. */
const longestAnswerMs = 5_000;

type Dialog = {
  readonly dialogId: string;
  /** Where it is known: what credentials are made for. */
  readonly requestUri: string | undefined;
  /** For a far end that asks for them. */
  readonly credentials: Credentials | undefined;
  readonly isWanted: () => boolean;
};

/** Whether the far end has taken it. */
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
