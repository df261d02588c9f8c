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

/** What the index `calls_by_call_sid` has. */
export function digitsOfCallSid(callSid: string): string {
  return callSid.slice('CA'.length);
}

/** The index `calls_by_call_sid` has the same of every call with a stream. */
function digits(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
