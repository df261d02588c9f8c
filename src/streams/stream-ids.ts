// The SIDs by which bots know an account, a call and a stream, in the format that bot libraries
// validate. They are derived from our ids, so they are the same on every node and after a
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
 * Returns the call's SID. If the request has a stream, the index `calls_by_call_sid` finds the call
 * by its SID. A call that gets its first stream by command is not in the index, so its SID contains
 * its id.
 */
function callSidOf({ callId, request }: StreamedCall): string {
  const own = callId.replace(/^call-/, '').replaceAll('-', '');
  const isIndexed = request.stream !== undefined || !/^[0-9a-f]{32}$/.test(own);
  return `CA${isIndexed ? digits(callId) : own}`;
}

/** Returns the call id contained in a SID, for calls whose request has no stream. */
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
 * Derives 32 hex digits. The SQL index `calls_by_call_sid` computes the same digits, so keep the
 * two in step.
 */
function digits(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
