// Ids by which bots know an account, a call and its stream. They have the form that bots' libraries
// check. They are derived from our own ids, so they are the same on every node and after a
// reconnect.

import { createHash } from 'node:crypto';

export type StreamIds = {
  readonly accountSid: string;
  readonly callSid: string;
  readonly streamSid: string;
};

type StreamedCall = {
  readonly appId: string;
  readonly callId: string;
  readonly request: { readonly stream?: unknown };
};

/** `ordinal` is the number of the stream within its call. 0 is the stream of the request. */
export function streamIdsOf(call: StreamedCall, ordinal = 0): StreamIds {
  const { appId, callId } = call;
  const which = ordinal === 0 ? '' : ` ${ordinal}`;
  return {
    accountSid: accountSidOf(appId),
    callSid: callSidOf(call),
    streamSid: `MZ${digits(`stream ${callId}${which}`)}`,
  };
}

/**
 * Returns the call's SID. Calls whose request has a stream are in the index `calls_by_call_sid`. A
 * call that got its first stream by command is not: its SID therefore contains its id.
 */
function callSidOf({ callId, request }: StreamedCall): string {
  const own = callId.replace(/^call-/, '').replaceAll('-', '');
  const isIndexed = request.stream !== undefined || !/^[0-9a-f]{32}$/.test(own);
  return `CA${isIndexed ? digits(callId) : own}`;
}

/** Returns the call id that the SID of a call without a stream in its request contains. */
export function callIdOfCallSid(callSid: string): string {
  const uuid = digitsOfCallSid(callSid).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  return `call-${uuid}`;
}

export function accountSidOf(appId: string): string {
  return `AC${digits(appId)}`;
}

/** Returns the part of the SID that the index `calls_by_call_sid` stores. */
export function digitsOfCallSid(callSid: string): string {
  return callSid.slice('CA'.length);
}

/**
 * Derives 32 hex digits. The index `calls_by_call_sid` computes them in the same way for each call
 * whose request has a stream.
 */
function digits(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
