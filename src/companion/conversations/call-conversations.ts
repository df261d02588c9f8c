// Presents a dial-out call as a conversation between the bot and the callee. The trunk appears as
// the queue in which the call was waiting.

import type { DialTarget } from '../../calls/call-types.ts';
import { callIdOfSession } from '../../calls/life/call-events.ts';
import { uriOfTarget } from '../../calls/target/dial-target.ts';
import type { BotOwner } from '../../events/ingest.ts';
import type { CallColumns } from '../../store/calls/call-rows.ts';
import type { Database } from '../../store/database.ts';
import type { ConversationSession } from './conversation-schema.ts';
import type { FoundConversation } from './published-conversations.ts';

type ConversationColumns = Pick<
  CallColumns,
  'conversation_id' | 'bot_id' | 'request' | 'accepted_at'
> & {
  readonly dial_started_at: Date | null;
  readonly answered_at: Date | null;
  readonly ended_at: Date | null;
  // Null until the call ends, except for the verdict, which may be missing for good.
  readonly outcome: string | null;
  readonly reason: string | null;
  readonly reason_code: string | null;
  readonly verdict: string | null;
};

export async function findCall(
  { reads }: Pick<Database, 'reads'>,
  { accountId, botId }: BotOwner,
  sessionId: string,
): Promise<FoundConversation | undefined> {
  const callId = callIdOfSession(sessionId);
  if (callId === undefined) return undefined;
  const { rows } = await reads(accountId).query<ConversationColumns>(
    `select conversation_id, bot_id, request, accepted_at, dial_started_at, answered_at, ended_at, outcome, reason,
       reason_code, verdict
     from calls where call_id = $1 and account_id = $2 and bot_id = $3`,
    [callId, accountId, botId],
  );
  const [call] = rows;
  if (call === undefined) return undefined;
  const { accepted_at: from, ended_at: to } = call;
  return { session: sessionOf(call), period: { from, ...(to === null ? {} : { to }) } };
}

function sessionOf(call: ConversationColumns): ConversationSession {
  const { target } = call.request;
  return {
    _id: call.conversation_id,
    participants: participantsOf(call),
    transferDetails: [],
    conversationType: 'voice',
    status: call.ended_at === null ? 'ACTIVE' : 'CLOSED',
    summary: [],
    dispositions: dispositionsOf(call),
    userInfo: target.kind === 'tel' ? { phoneNumber: nameOf(target) } : {},
    notes: [],
  };
}

function participantsOf(call: ConversationColumns): ConversationSession['participants'] {
  const { trunk, target } = call.request;
  const { dial_started_at: dialStartedAt, answered_at: answeredAt, ended_at: endedAt } = call;
  const onTheLine = {
    status: answeredAt !== null && endedAt === null ? ('ACTIVE' as const) : ('INACTIVE' as const),
    ...(answeredAt === null ? {} : { startTimeStamp: answeredAt.toISOString() }),
    ...(answeredAt === null || endedAt === null ? {} : { endTimeStamp: endedAt.toISOString() }),
  };
  const endedBy = (reasonCode: string) =>
    call.reason_code === reasonCode ? { endedChat: true } : {};
  return [
    {
      ...(trunk === undefined ? {} : { queueId: trunk, queueName: trunk }),
      queueStartTime: call.accepted_at.toISOString(),
      agentId: call.bot_id,
      name: call.bot_id,
      ...(dialStartedAt === null ? {} : { assignedAt: dialStartedAt.toISOString() }),
      ...onTheLine,
      ...endedBy('Bot-disconnected'),
    },
    { name: nameOf(target), ...onTheLine, ...endedBy('Caller-disconnected') },
  ];
}

function nameOf(target: DialTarget): string {
  return target.kind === 'sip'
    ? `${target.user}@${target.host}`
    : uriOfTarget(target).slice('tel:'.length);
}

/** Which party ended the call, in the style of `AGENT_CLOSED`. */
const metaStatus: Readonly<Record<string, string>> = {
  'Caller-disconnected': 'USER_CLOSED',
  'Bot-disconnected': 'BOT_CLOSED',
  'Gateway-disconnected': 'SYSTEM_CLOSED',
};

function dispositionsOf(call: ConversationColumns): ConversationSession['dispositions'] {
  const { outcome, reason, reason_code: reasonCode, verdict } = call;
  if (outcome === null || reason === null || reasonCode === null) return {};
  return {
    status: outcome,
    remarks: reason,
    dispositionSets:
      verdict === null ? [] : [{ dispositionsSet: 'machineDetection', dispositionCodes: verdict }],
    metaStatus: metaStatus[reasonCode] ?? 'NOT_ANSWERED',
  };
}
