// Schemas for a message, both as producers publish it and as the specification describes it in
// responses.

import { z } from 'zod';
import { inRange, timestamp } from '../../calls/contract/timestamp.ts';
import { identifierUpTo } from '../../lib/ids.ts';

export const channelTypes: readonly string[] = [
  'msteams twitter spark rtm facebook slack kore email sms wfacebook ringcentral jabber yammer alexa twiliovoice telegram',
  'ivr ivrVoice contactcenter line liveperson googleactions hangoutchat mattermost rcs',
].flatMap((names) => names.split(' '));
export const defaultChannel = 'rtm';

/** Ids, including user ids, which may be e-mail addresses. */
export const identifier = identifierUpTo(256);

export const messageId = z
  .string()
  .regex(/^ms-[0-9A-Za-z-]{1,64}$/, 'must be `ms-<uuid>`')
  .describe('`ms-<uuid>`');

const publishedTime = inRange(timestamp);

const members = {
  _id: messageId,
  type: z.enum(['incoming', 'outgoing']).describe('user input, or bot response'),
  status: z.enum(['received', 'queued', 'in progress', 'delivered', 'pending']),
  createdBy: identifier.describe("the end user's identifier, which a request's `userId` selects"),
  components: z
    .array(
      z.looseObject({
        cT: z.string().max(64).describe('for example `text`'),
        data: z.looseObject({}),
      }),
    )
    .max(200),
  lang: z.string().max(64).exactOptional().describe('conversation language'),
  chnl: z.string().max(64).exactOptional().describe("end user's conversation channel"),
  tags: z.looseObject({}).exactOptional().describe('meta tags'),
  sessionId: identifier,
};
const channel = z.enum(channelTypes).describe('channel name');
const channelUId = identifier.exactOptional().describe('end-user identity in the channel');

const optionalMembers = {
  traceId: identifier.exactOptional(),
  agentInfo: z.looseObject({}).exactOptional(),
  secureForm: z.looseObject({}).exactOptional(),
};

const example = {
  _id: 'ms-5a8f9f1e-7d5d-4c0c-9a50-2f6a7c1f3b42',
  type: 'incoming',
  status: 'received',
  createdBy: 'jane.doe@example.com',
  createdOn: '2026-11-20T09:30:00.120Z',
  channels: [{ type: 'rtm', channelUId: 'jane.doe@example.com/web' }],
  components: [{ cT: 'text', data: { text: 'What is my balance?' } }],
  lang: 'en',
  chnl: 'rtm',
  tags: { campaign: 'spring' },
  sessionId: 'ss-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10',
};
const botExample = { botId: 'st-1b2c3d' };

export const message = z
  .object({
    ...members,
    botId: z.string().describe("the bot's own id"),
    createdOn: timestamp,
    channels: z.array(z.object({ type: channel, channelUId })),
    traceId: optionalMembers.traceId.describe(
      'trace identifier of an incoming message, if `includeTraceId` is true; kept for 30 days',
    ),
    agentInfo: optionalMembers.agentInfo.describe(
      'as the contact center published it, if `getAgentsInfo` is true',
    ),
    secureForm: optionalMembers.secureForm.describe(
      "the form's input, if `includeSecureForm` is true",
    ),
  })
  .meta({ id: 'Message', examples: [{ ...botExample, ...example }] });

export const messagePage = z
  .object({
    total: z
      .int()
      .min(0)
      .describe('number of matching messages, regardless of `skip`, `limit` and `msgId`'),
    moreAvailable: z
      .boolean()
      .describe(
        'true if there are more messages in this direction; with `direction` 0, in either direction',
      ),
    icon: z
      .string()
      .describe('URL of the bot’s logo; empty if it has none, or if the path names no bot'),
    messages: z.array(message),
  })
  .meta({
    id: 'MessagePage',
    examples: [
      {
        total: 1,
        moreAvailable: false,
        icon: 'https://bots.example.com/logo.png',
        messages: [{ ...botExample, ...example }],
      },
    ],
  });

/**
 * A message as it is published on `<prefix>.ingest.messages.<botId>`. Producers publish the
 * complete message after each change.
 */
export const publishedMessage = z
  .object({
    ...members,
    components: members.components.default([]),
    createdOn: publishedTime,
    channels: z
      .array(z.object({ type: channel.default(defaultChannel), channelUId }))
      .max(20)
      .default([])
      .describe("a request's `channelType` selects by the first channel; default: `rtm`"),
    traceId: optionalMembers.traceId.describe('kept with incoming messages only'),
    taskType: z
      .string()
      .max(64)
      .exactOptional()
      .describe('kind of task that the message belongs to; version 2 omits `alert` and `action`'),
    callId: identifier
      .exactOptional()
      .describe('the call in which the message was spoken, on voice channels'),
    agentInfo: optionalMembers.agentInfo.describe('the contact center agent who wrote the message'),
    secureForm: optionalMembers.secureForm.describe('what the user submitted in a secure form'),
  })
  .meta({
    id: 'PublishedMessage',
    'x-subject': '<prefix>.ingest.messages.<botId>',
    description:
      'Publish the complete message whenever it changes. A later version replaces an earlier one. The subject names the bot.',
    examples: [
      {
        ...example,
        traceId: 'tc-9c1d0a6b',
        taskType: 'dialog',
        agentInfo: { agentId: 'a-4711', name: 'Ada' },
        secureForm: { accountNumber: '00012345' },
      },
    ],
  });

export type PublishedMessage = z.infer<typeof publishedMessage>;
