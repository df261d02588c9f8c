// Builds the settings for audio streams to bots, by combining the stream address from a stored
// request or a command with the app's secret.

import type { StreamServices } from '../api/services.ts';
import type { AcceptedCall, DialTarget } from '../calls/call-types.ts';
import type { StreamPort } from '../calls/ports.ts';
import type { Config } from '../config.ts';
import { createAddressGuard } from '../lib/address-guard.ts';
import { openStreamUrl, sealStreamUrl } from '../store/apps/stream-addresses.ts';
import { accountSidOf, callIdFromSid, callSidDigits, streamIdsOf } from '../streams/stream-ids.ts';
import { networksOpenTo } from './networks.ts';
import type { Storage } from './storage.ts';

export function createStreamPort({ apps, secrets }: Pick<Storage, 'apps' | 'secrets'>): StreamPort {
  return {
    async settingsOf(call, { ordinal, connect, parameters, ...address }) {
      const { appId, botId } = call;
      const app = await apps.find(appId);
      const secret = app?.streamSecrets[0];
      if (secret === undefined) throw new Error('the app is revoked');
      return {
        ...{ ordinal, connect, secret },
        url: openStreamUrl(secrets, botId, address),
        ...streamIdsOf(call, ordinal),
        customParameters: customParametersOf(call, parameters),
      };
    },
  };
}

export function createStreamServices(
  config: Config,
  { secrets, ledger }: Pick<Storage, 'secrets' | 'ledger'>,
  beyondLaptop: readonly string[],
): StreamServices {
  const guard = createAddressGuard(networksOpenTo(config.streams.allowedNetworks, beyondLaptop));
  return {
    isReachable: (url) => guard.isHostAllowed(url),
    seal: (botId, url) => sealStreamUrl(secrets, botId, url),
    async callOf(callSid) {
      const call = await ledger.callOfSid(callSidDigits(callSid), callIdFromSid(callSid));
      return call === undefined ? undefined : { ...call, accountSid: accountSidOf(call.appId) };
    },
  };
}

/**
 * Returns the custom parameters that describe the call to the bot. If names clash, the gateway's
 * own parameters win over the request's, and these win over metadata.
 */
function customParametersOf(
  { callId, conversationId, botId, request }: AcceptedCall,
  parameters: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const metadata = Object.entries(request.metadata).map(([name, value]) => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value),
  ]);
  return {
    ...(Object.fromEntries(metadata) as Record<string, string>),
    ...parameters,
    // Pipecat's runner expects the call's numbers under these two names.
    from_number: request.caller,
    to_number: numberOf(request.target),
    ...{ callId, conversationId, botId },
  };
}

function numberOf(target: DialTarget): string {
  if (target.kind === 'tel') return `+${target.number}`;
  if (target.kind === 'local') return target.digits;
  const { user, host, port } = target;
  return `sip:${user}@${host}${port === undefined ? '' : `:${port}`}`;
}
