// The SIDs that bots use for an account, a call and a stream, in the format that bot libraries
// validate. Since we derive them from our own ids, they're the same on every node and after a
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

/** `ordinal` numbers the streams within a call. 0 is the stream in the request. */
export function streamIdsOf(call: StreamedCall, ordinal = 0): StreamIds {
  const { appId, callId } = call;
  const which = ordinal === 0 ? '' : ` ${ordinal}`;
  return {
    accountSid: accountSidOf(appId),
    callSid: createCallSid(call),
    streamSid: `MZ${deriveDigits(`stream ${callId}${which}`)}`,
  };
}

/**
 * Returns the call's SID. If the request contains a stream, we can find the call by its SID through
 * the index `calls_by_call_sid`. A call that gets its first stream from a command isn't in that
 * index, so its SID contains the call id instead.
 */
function createCallSid({ callId, request }: StreamedCall): string {
  const own = callId.replace(/^call-/, '').replaceAll('-', '');
  const isIndexed = request.stream !== undefined || !/^[0-9a-f]{32}$/.test(own);
  return `CA${isIndexed ? deriveDigits(callId) : own}`;
}

/** Returns the call id in a SID, for calls whose request contains no stream. */
export function callIdFromSid(callSid: string): string {
  const uuid = callSidDigits(callSid).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  return `call-${uuid}`;
}

export function accountSidOf(appId: string): string {
  return `AC${deriveDigits(appId)}`;
}

/** Returns the part of the SID that the index `calls_by_call_sid` stores. */
export function callSidDigits(callSid: string): string {
  return callSid.slice('CA'.length);
}

/**
 * Derives 32 hex digits from the text. Keep this in step with the SQL index `calls_by_call_sid`,
 * which computes the same digits.
 */
function deriveDigits(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
