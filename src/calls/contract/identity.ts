// What identifies a call, and what each of its events repeats.

import { z } from 'zod';
import type { Immutable } from './schema.ts';

/** `call-<uuid>`: one phone call. Safe as a NATS subject token and as a path segment. */
export const callIdSchema = z.string().min(1).brand<'CallId'>();
export type CallId = z.infer<typeof callIdSchema>;

export const callIdentity = z.object({
  callId: callIdSchema,
  sid: z.string().min(1).describe('`sid-<uuid>`: names the dial-out request'),
  conversationId: z.string().min(1).describe('UUID: joins the notifications of one conversation'),
  botId: z.string().min(1),
  accountId: z.string().min(1),
  appId: z.string().min(1),
});
export type CallIdentity = Immutable<z.infer<typeof callIdentity>>;
