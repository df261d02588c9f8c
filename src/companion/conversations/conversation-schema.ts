// Schemas for a conversation session, both as producers publish it and as the specification
// describes it in responses.

import { z } from 'zod';
import { timestamp } from '../../calls/contract/timestamp.ts';

/**
 * These bounds are generous, but they keep a single session from filling the database or a
 * response.
 */
const name = z.string().max(256);
const prose = z.string().max(10_000);

/** The same pattern as in paths, so clients can request every stored session. */
export const sessionId = z
  .string()
  .regex(/^[\x21-\x7e]{1,128}$/, 'must be 1 to 128 visible ASCII characters')
  .describe(
    'the parent application session, for example the `sessionId` from a `completed` notification',
  )
  .meta({ examples: ['ss-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10'] });

// A conversation first waits in a queue, is then served by an agent, and finally ends. Fields are
// omitted until their values are known.

const participant = z.object({
  queueId: name.exactOptional(),
  queueStartTime: timestamp.exactOptional(),
  queueName: name.exactOptional(),
  agentId: name.exactOptional(),
  name: name.exactOptional(),
  status: z.enum(['ACTIVE', 'INACTIVE']),
  assignedAt: timestamp.exactOptional(),
  startTimeStamp: timestamp.exactOptional(),
  endTimeStamp: timestamp.exactOptional(),
  conversationTransferred: z.boolean().exactOptional(),
  reason: name.exactOptional().describe('for example `OVERDUE`'),
  endedChat: z
    .boolean()
    .exactOptional()
    .describe('true if this participant ended the conversation'),
});

const transfer = z.object({
  fromQueue: name.exactOptional(),
  transferredByAgentName: name.exactOptional(),
  transferredType: name.exactOptional().describe('for example `QUEUE`'),
  transferredTo: z
    .array(z.object({ id: name, name: name.exactOptional(), type: name.exactOptional() }))
    .max(100)
    .exactOptional(),
  priority: name.exactOptional().describe('for example `HIGHEST`'),
  transferredAt: timestamp.exactOptional(),
  systemTransferReason: name.exactOptional().describe('for example `OVERDUE`'),
  systemTransfer: z.boolean().exactOptional(),
});

const example = {
  _id: '5a8f9f1e-7d5d-4c0c-9a50-2f6a7c1f3b42',
  participants: [
    {
      queueId: 'qu-1b2c3d',
      queueStartTime: '2026-11-20T09:29:48.120Z',
      queueName: 'Billing',
      agentId: 'a-4711',
      name: 'Ada',
      status: 'INACTIVE' as const,
      assignedAt: '2026-11-20T09:30:02.004Z',
      startTimeStamp: '2026-11-20T09:30:05.500Z',
      endTimeStamp: '2026-11-20T09:41:17.250Z',
      endedChat: true,
    },
  ],
  transferDetails: [
    {
      fromQueue: 'qu-9z8y7x',
      transferredByAgentName: 'Grace',
      transferredType: 'QUEUE',
      transferredTo: [{ id: 'qu-1b2c3d', name: 'Billing', type: 'QUEUE' }],
      priority: 'HIGHEST',
      transferredAt: '2026-11-20T09:29:48.100Z',
      systemTransferReason: 'OVERDUE',
      systemTransfer: true,
    },
  ],
  conversationType: 'livechat',
  status: 'CLOSED',
  summary: ['Asked about an invoice; it was explained.'],
  dispositions: {
    status: 'Resolved',
    remarks: 'Paid at once',
    dispositionSets: [{ dispositionsSet: 'Billing', dispositionCodes: 'Explained' }],
    metaStatus: 'AGENT_CLOSED',
  },
  userInfo: {
    firstName: 'Alan',
    lastName: 'Turing',
    email: 'alan@example.com',
    phoneNumber: '+15551230001',
    activationStatus: 'active',
  },
  notes: [],
};

export const conversationSession = z
  .object({
    _id: name.min(1).describe('conversation identifier'),
    conversationType: name.describe('for example `livechat`; `voice` for a call of this gateway'),
    status: name.describe('`CLOSED` once the conversation has ended'),
    participants: z.array(participant).max(200),
    transferDetails: z.array(transfer).max(200),
    summary: z.array(prose).max(100),
    dispositions: z.object({
      status: name.exactOptional(),
      remarks: prose.exactOptional(),
      dispositionSets: z
        .array(z.object({ dispositionsSet: name, dispositionCodes: name }))
        .max(100)
        .exactOptional(),
      metaStatus: name
        .exactOptional()
        .describe('who ended the conversation, for example `AGENT_CLOSED`'),
    }),
    userInfo: z
      .object({
        firstName: name.exactOptional(),
        lastName: name.exactOptional(),
        email: name.exactOptional(),
        phoneNumber: name.exactOptional(),
        activationStatus: name.exactOptional(),
      })
      .describe('personal data of the end user'),
    notes: z.array(z.unknown()).max(1_000).describe('internal notes of agents, unchanged'),
  })
  .meta({
    id: 'ConversationSession',
    description: "One session's conversation. Fields that are not known are omitted.",
    examples: [example],
  });

export type ConversationSession = z.infer<typeof conversationSession>;

const { shape } = conversationSession;

export const publishedConversation = conversationSession
  .extend({
    sessionId,
    accountId: name.describe("the bot's account; any other account is rejected"),
    participants: shape.participants.default([]),
    transferDetails: shape.transferDetails.default([]),
    summary: shape.summary.default([]),
    dispositions: shape.dispositions.default({}),
    userInfo: shape.userInfo.default({}),
    notes: shape.notes.default([]),
  })
  .meta({
    id: 'PublishedConversation',
    description:
      'Publish the complete session whenever it changes. A later version replaces an earlier one. Times may have any zone and precision.',
    examples: [
      { sessionId: 'ss-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10', accountId: 'acme', ...example },
    ],
    'x-subject': '<prefix>.ingest.conversations.<botId>',
  });

export type PublishedConversation = z.infer<typeof publishedConversation>;
