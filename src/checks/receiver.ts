// Checks that the gateway can reach a notification receiver. The check connects through the same
// address guard as the gateway. It doesn't send anything, because the receiver would see a false
// notification.

import { once } from 'node:events';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { createAddressGuard } from '../lib/address-guard.ts';
import { notifyUrlProblem } from '../notifier/notify-url.ts';
import { type Check, connectTimeoutMs, type Finding, failed, ok, skipped } from './check.ts';
import { reasonOf } from './reasons.ts';

const notAllowed = 'its address is private, local or reserved, and not in NOTIFY_ALLOWED_NETWORKS';

export function receiverCheck(url: string | undefined, allowedNetworks: readonly string[]): Check {
  const run = async (): Promise<Finding> => {
    if (url === undefined) return skipped('to check one, pass --notify URL');
    const problem = notifyUrlProblem(url);
    return problem === undefined
      ? await connectTo(new URL(url), allowedNetworks)
      : failed(`${url}: ${problem}`);
  };
  return { name: 'receiver', run };
}

async function connectTo(url: URL, allowedNetworks: readonly string[]): Promise<Finding> {
  const { host } = url;
  const guard = createAddressGuard(allowedNetworks);
  if (!guard.isHostAllowed(url)) return failed(`${host}: ${notAllowed}`);
  const isSecure = url.protocol === 'https:';
  const name = url.hostname.replace(/^\[|\]$/g, '');
  const address = {
    host: name,
    port: Number(url.port) || (isSecure ? 443 : 80),
    lookup: guard.lookup,
  };
  const socket = isSecure ? connectTls({ ...address, servername: name }) : connect(address);
  const signal = AbortSignal.timeout(connectTimeoutMs);
  try {
    await once(socket, isSecure ? 'secureConnect' : 'connect', { signal });
    return ok(`${host} accepts connections${isSecure ? ', and its certificate is valid' : ''}`);
  } catch (error) {
    return failed(`${host}: ${signal.aborted ? 'no answer' : reasonOf(error)}`);
  } finally {
    socket.destroy();
  }
}
