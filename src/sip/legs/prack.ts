// Acknowledges reliable provisional responses (RFC 3262). srf can do that too, but never learns
// whether a carrier challenged the PRACK. Without a valid PRACK, the call can't be answered.

import type { DigestClient } from '../digest/digest-client.ts';
import type { EngineLink } from '../engine/engine-link.ts';
import type { ReceivedResponse } from '../engine/srf-types.ts';
import { beginTransaction } from './transaction.ts';

/** Every SIP stack gives up after 64*T1, and so does the far end (RFC 3262, section 3). */
const answerTimeoutMs = 32_500;

/** Sends a PRACK for the response, unless the response isn't reliable. */
export function acknowledgeProvisional(
  link: EngineLink,
  response: ReceivedResponse,
  digest: DigestClient | undefined,
): void {
  const sequence = response.get('RSeq');
  const { stackDialogId } = response;
  if (sequence === undefined || !stackDialogId) return;
  const headers = { RAck: `${sequence} ${response.get('CSeq')}` };
  const wait = {
    until: 'answered',
    timeoutMs: answerTimeoutMs,
    authentication: { client: digest },
  } as const;
  // If the PRACK fails, the far end refuses the call by itself.
  beginTransaction(link, { method: 'PRACK', stackDialogId, headers }, wait, () => undefined);
}
