// OPTIONS to a gateway: would it take a call? (RFC 3261, section 11: the answer is what an INVITE would get.)

import type { EngineLink } from '../engine/engine-link.ts';
import { type TransactionResult, transact } from '../legs/transaction.ts';
import type { ProbeResult } from './gateway-health.ts';
import { gatewayUri } from './routing.ts';
import type { Gateway } from './trunks.ts';

export async function probeGateway(
  link: EngineLink,
  gateway: Gateway,
  timeoutMs: number,
): Promise<ProbeResult> {
  const uri = gatewayUri(gateway);
  const headers = { From: '<sip:offhook@localhost>', To: `<${uri}>`, Accept: 'application/sdp' };
  const options = { method: 'OPTIONS', uri, headers };
  return resultOf(await transact(link, options, { until: 'answered', timeoutMs }));
}

/**
 * Many gateways answer OPTIONS with 401, 403, 404 or 405, for there is no such user, and take calls all the same: any answer
 * is a sign of life, but those that say that the server is in trouble. 501 only says that it does not know the method.
 */
function resultOf(result: TransactionResult): ProbeResult {
  switch (result.kind) {
    case 'response': {
      const { status, byStack } = result;
      const isInTrouble = status === 408 || (status >= 500 && status !== 501);
      return byStack === true || isInTrouble ? 'silent' : 'alive';
    }
    // The engine has no way to it, e.g. no such transport.
    case 'refused':
    case 'timeout':
      return 'silent';
    case 'lost':
      return 'unknown';
  }
}
