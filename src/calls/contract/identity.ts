// The ids of a call, which each of its events repeats.

import { z } from 'zod';
import { identifier } from '../../lib/ids.ts';
import type { Immutable } from './schema.ts';

/** `call-<uuid>`, the id of one phone call. Safe as a NATS subject token and as a path segment. */
export const callIdSchema = identifier.brand<'CallId'>();
export type CallId = z.infer<typeof callIdSchema>;

export const callIdentity = z.object({
  callId: callIdSchema,
  sid: identifier.describe('`sid-<uuid>`: names the dial-out request'),
  conversationId: identifier.describe('UUID: joins the notifications of one conversation'),
  botId: identifier,
  accountId: identifier,
  appId: identifier,
});
export type CallIdentity = Immutable<z.infer<typeof callIdentity>>;
