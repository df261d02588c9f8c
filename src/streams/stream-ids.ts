// The names by which bots know an account, a call and its stream. They have the form that bots' libraries check, and are made of
// our own ids, so that they are the same on every node and after a reconnection.

import { createHash } from 'node:crypto';

export type StreamIds = {
  readonly accountSid: string;
  readonly callSid: string;
  readonly streamSid: string;
};

export function streamIdsOf({
  appId,
  callId,
}: {
  readonly appId: string;
  readonly callId: string;
}): StreamIds {
  return {
    accountSid: accountSidOf(appId),
    callSid: `CA${digits(callId)}`,
    streamSid: `MZ${digits(`stream ${callId}`)}`,
  };
}

export function accountSidOf(appId: string): string {
  return `AC${digits(appId)}`;
}

/** The index of migration 0021 has the same of every call with a stream. */
function digits(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
