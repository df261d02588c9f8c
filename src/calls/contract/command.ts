// Commands of bots while a call is up, on `<prefix>.command.<callId>`: request and reply.

import { z } from 'zod';
import type { Immutable } from './schema.ts';

export const commandSchema = z.object({ command: z.enum(['hangup']) });
export type Command = Immutable<z.infer<typeof commandSchema>>;

export const commandReply = z.union([
  z.object({ ok: z.literal(true), state: z.string().exactOptional() }),
  z.object({ ok: z.literal(false), error: z.string() }),
]);
export type CommandReply = Immutable<z.infer<typeof commandReply>>;
