// A row of `calls` as `pg` returns it, and its conversion to the domain's type.

import type { AcceptedCall, DialoutRequest } from '../../calls/call-types.ts';
import { type CallEvent, callEventId } from '../../calls/contract/call-event.ts';
import type { CallId, CallIdentity } from '../../calls/contract/identity.ts';

export type IdentityColumns = {
  readonly call_id: string;
  readonly sid: string;
  readonly conversation_id: string;
  readonly account_id: string;
  readonly app_id: string;
  readonly bot_id: string;
};

export type CallColumns = IdentityColumns & {
  readonly accepted_at: Date;
  readonly request: DialoutRequest;
};

export const callColumns =
  'call_id, sid, conversation_id, account_id, app_id, bot_id, accepted_at, request';

/** An event's columns in `call_events`. */
export type EventColumns = {
  readonly event_sequence: number;
  readonly type: CallEvent['type'];
  readonly time: Date;
  readonly data: CallEvent['data'];
};

/** Builds an event from its columns and those of its call. */
export function toCallEvent(
  { callId, sid, conversationId, botId, accountId, appId }: CallIdentity,
  { event_sequence: eventSequence, type, time, data }: EventColumns,
): CallEvent {
  return {
    ...{ id: callEventId(callId, type, eventSequence), time: time.toISOString(), eventSequence },
    ...{ callId, sid, conversationId, botId, accountId, appId, type, data },
    // The row was written from a CallEvent.
  } as CallEvent;
}

export function identityOf(row: IdentityColumns): CallIdentity {
  return {
    // The column was written from a CallId.
    callId: row.call_id as CallId,
    sid: row.sid,
    conversationId: row.conversation_id,
    botId: row.bot_id,
    accountId: row.account_id,
    appId: row.app_id,
  };
}

export function toAcceptedCall(row: CallColumns): AcceptedCall {
  return { ...identityOf(row), request: row.request, acceptedAt: row.accepted_at };
}
