// A row of `calls` as `pg` returns it, and its conversion to the domain's type.

import type { AcceptedCall, DialoutRequest } from '../../calls/call-types.ts';
import type { CallId } from '../../calls/contract/identity.ts';

export type CallColumns = {
  readonly call_id: string;
  readonly sid: string;
  readonly conversation_id: string;
  readonly account_id: string;
  readonly app_id: string;
  readonly bot_id: string;
  readonly accepted_at: Date;
  readonly request: DialoutRequest;
};

export const callColumns =
  'call_id, sid, conversation_id, account_id, app_id, bot_id, accepted_at, request';

export function toAcceptedCall(row: CallColumns): AcceptedCall {
  return {
    // The column was written from a CallId.
    callId: row.call_id as CallId,
    sid: row.sid,
    conversationId: row.conversation_id,
    botId: row.bot_id,
    accountId: row.account_id,
    appId: row.app_id,
    request: row.request,
    acceptedAt: row.accepted_at,
  };
}
