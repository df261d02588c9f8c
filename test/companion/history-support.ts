// Messages as producers publish them, and as history responses contain them.

import { randomUUID } from 'node:crypto';
import type { z } from 'zod';
import {
  type message,
  type messagePage,
  publishedMessage,
} from '../../src/companion/history/message-schema.ts';
import { storeMessages } from '../../src/companion/history/published-messages.ts';
import type { Database } from '../../src/store/database.ts';

export type Message = z.infer<typeof message>;
export type Page = z.infer<typeof messagePage>;
export type Published = z.input<typeof publishedMessage>;

let version = 1_795_000_000_000_000;
/** Each message is a millisecond younger than the previous one. */
let createdMs = Date.parse('2026-11-20T09:30:00.000Z');

export function published(members: Partial<Published> = {}): Published {
  createdMs += 1;
  return {
    _id: `ms-${randomUUID()}`,
    type: 'incoming',
    status: 'received',
    createdBy: 'jane.doe@example.com',
    createdOn: new Date(createdMs).toISOString(),
    channels: [{ type: 'rtm', channelUId: 'jane/web' }],
    components: [{ cT: 'text', data: { text: 'What is my balance?' } }],
    lang: 'en',
    chnl: 'rtm',
    tags: { campaign: 'spring' },
    sessionId: 'ss-1',
    ...members,
  };
}

/** Stores messages as the consumer of `ingest.messages` does, in the order of their publication. */
export async function tell(
  database: Pick<Database, 'pool'>,
  messages: readonly Partial<Published>[],
  bot = { botId: 'st-1', accountId: 'acme' },
): Promise<readonly string[]> {
  const items = messages.map((members) => {
    version += 1;
    return { bot, version, body: publishedMessage.parse(published(members)) };
  });
  for (let index = 0; index < items.length; index += 500) {
    await storeMessages(database, items.slice(index, index + 500));
  }
  return items.map(({ body }) => body._id);
}
