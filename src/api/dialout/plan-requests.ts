// The members `voicemail` and `screening` of a dial-out request: what happens after the verdict without a round trip.

import { z } from 'zod';
import type { MachineDetectionMode } from '../../calls/call-types.ts';
import { soundPlaceOf } from '../../calls/contract/sound-reference.ts';
import { noBeepChoices } from '../../calls/plans.ts';
import type { MemberError } from '../../http/problem.ts';

const soundReference = z
  .string()
  .max(2_048)
  .refine(
    (text) => soundPlaceOf(text) !== undefined,
    'must be sound:<name>, or a URL of a WAV file',
  )
  .describe('`sound:<name>` of the account, or the `https:` URL of a WAV file');

const milliseconds = (from: number, to: number) =>
  z.number().overwrite(Math.round).min(from).max(to);

export const voicemailSchema = z.object({
  play: soundReference,
  ifNoBeep: z
    .enum(noBeepChoices)
    .default('play')
    .describe('whether the message is left where no beep comes in time; `hangup`: none is'),
  waitForBeepMs: milliseconds(500, 30_000)
    .default(4_000)
    .describe('from the last word of the greeting'),
  maxMs: milliseconds(1_000, 600_000)
    .default(60_000)
    .describe('from the first start of the message to the hang-up, restarts included'),
});

export const screeningSchema = z.object({ play: soundReference });

/** They act on what detection says, and where it hangs up there is no call to act on. */
export function planErrors(
  wanted: { readonly voicemail?: unknown; readonly screening?: unknown },
  machineDetection: MachineDetectionMode,
): readonly MemberError[] {
  if (machineDetection === 'detect') return [];
  return (['voicemail', 'screening'] as const)
    .filter((name) => wanted[name] !== undefined)
    .map((path) => ({ path, message: 'needs machineDetection: detect' }));
}
