// The names by which bots know an account, a call and its stream. They have the form that bots' libraries check, and are made of
// our own ids, so that they are the same on every node and after a reconnection.

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

/** `ordinal`: of the call's streams, 0 that of its request. */
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
 * The index `calls_by_call_sid` has calls whose request has a stream. One that got its first stream by command is found by its
 * id, which is in the name.
 */
function callSidOf({ callId, request }: StreamedCall): string {
  const own = callId.replace(/^call-/, '').replaceAll('-', '');
  const isIndexed = request.stream !== undefined || !/^[0-9a-f]{32}$/.test(own);
  return `CA${isIndexed ? digits(callId) : own}`;
}

/** Of a call whose request has no stream. */
export function callIdOfCallSid(callSid: string): string {
  const uuid = digitsOfCallSid(callSid).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  return `call-${uuid}`;
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
