// A dial-out call as the conversation that it is: the bot and the person it called, read from the call itself. The trunk
// is the queue that the call waits in.

import { and, eq } from 'drizzle-orm';
import { callIdOfSession } from '../../calls/call-facts.ts';
import type { DialTarget } from '../../calls/call-types.ts';
import type { TerminalEvent } from '../../calls/contract/call-event.ts';
import type { BotOwner } from '../../events/ingest.ts';
import type { Database } from '../../store/database.ts';
import { calls } from '../../store/schema.ts';
import type { ConversationSession } from './conversation-schema.ts';
import type { FoundConversation } from './published-conversations.ts';

export async function findCall(
  { db }: Pick<Database, 'db'>,
  { accountId, botId }: BotOwner,
  sessionId: string,
): Promise<FoundConversation | undefined> {
  const callId = callIdOfSession(sessionId);
  if (callId === undefined) return undefined;
  const [call] = await db
    .select()
    .from(calls)
    .where(and(eq(calls.callId, callId), eq(calls.accountId, accountId), eq(calls.botId, botId)));
  if (call === undefined) return undefined;
  const { acceptedAt: from, endedAt: to } = call;
  return { session: sessionOf(call), period: { from, ...(to === null ? {} : { to }) } };
}

function sessionOf(call: typeof calls.$inferSelect): ConversationSession {
  const { target } = call.request;
  return {
    _id: call.conversationId,
    participants: participantsOf(call),
    transferDetails: [],
    conversationType: 'voice',
    status: call.endedAt === null ? 'ACTIVE' : 'CLOSED',
    summary: [],
    dispositions: call.endEvent === null ? {} : dispositionsOf(call.endEvent.data),
    userInfo: target.kind === 'tel' ? { phoneNumber: nameOf(target) } : {},
    notes: [],
  };
}

function participantsOf(call: typeof calls.$inferSelect): ConversationSession['participants'] {
  const { trunk, target } = call.request;
  const { dialStartedAt, answeredAt, endedAt } = call;
  const onTheLine = {
    status: answeredAt !== null && endedAt === null ? ('ACTIVE' as const) : ('INACTIVE' as const),
    ...(answeredAt === null ? {} : { startTimeStamp: answeredAt.toISOString() }),
    ...(answeredAt === null || endedAt === null ? {} : { endTimeStamp: endedAt.toISOString() }),
  };
  const endedBy = (reasonCode: string) =>
    call.endEvent?.data.reasonCode === reasonCode ? { endedChat: true } : {};
  return [
    {
      ...(trunk === undefined ? {} : { queueId: trunk, queueName: trunk }),
      queueStartTime: call.acceptedAt.toISOString(),
      agentId: call.botId,
      name: call.botId,
      ...(dialStartedAt === null ? {} : { assignedAt: dialStartedAt.toISOString() }),
      ...onTheLine,
      ...endedBy('Bot-disconnected'),
    },
    { name: nameOf(target), ...onTheLine, ...endedBy('Caller-disconnected') },
  ];
}

function nameOf(target: DialTarget): string {
  return target.kind === 'tel' ? `+${target.number}` : `${target.user}@${target.host}`;
}

/** Who ended it, in the manner of `AGENT_CLOSED`. */
const metaStatus: Readonly<Record<string, string>> = {
  'Caller-disconnected': 'USER_CLOSED',
  'Bot-disconnected': 'BOT_CLOSED',
  'Gateway-disconnected': 'SYSTEM_CLOSED',
};

function dispositionsOf(end: TerminalEvent['data']): ConversationSession['dispositions'] {
  const { outcome, reason, reasonCode, machineDetection } = end;
  return {
    status: outcome,
    remarks: reason,
    dispositionSets:
      machineDetection === undefined
        ? []
        : [{ dispositionsSet: 'machineDetection', dispositionCodes: machineDetection }],
    metaStatus: metaStatus[reasonCode] ?? 'NOT_ANSWERED',
  };
}
