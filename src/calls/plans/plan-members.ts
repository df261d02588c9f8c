// The members `voicemail` and `screening` of a dial-out request: what happens after the verdict without a round trip.

import { z } from 'zod';
import type { MachineDetectionMode } from '../call-types.ts';
import type { MemberError } from '../contract/schema.ts';
import { soundNotReachable, soundReference } from '../playback/sound-reference.ts';
import { noBeepChoices } from './plans.ts';

const milliseconds = (from: number, to: number) =>
  z.number().overwrite(Math.round).min(from).max(to);

export const voicemailMember = z.object({
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

export const screeningMember = z.object({ play: soundReference });

type WantedPlans = {
  readonly voicemail?: { readonly play: string } | undefined;
  readonly screening?: { readonly play: string } | undefined;
};

/** They act on what detection says, and where it hangs up there is no call to act on. */
export function planErrors(
  wanted: WantedPlans,
  machineDetection: MachineDetectionMode,
): readonly MemberError[] {
  if (machineDetection === 'detect') return [];
  return plansOf(wanted).map(([path]) => ({ path, message: 'needs machineDetection: detect' }));
}

/** `isReachable`: whether a sound may be fetched from where it is. */
export function planSoundErrors(
  wanted: WantedPlans,
  isReachable: (reference: string) => boolean,
): readonly MemberError[] {
  return plansOf(wanted)
    .filter(([, { play }]) => !isReachable(play))
    .map(([name]) => ({ path: `${name}.play`, message: soundNotReachable }));
}

function plansOf({ voicemail, screening }: WantedPlans) {
  return Object.entries({ voicemail, screening }).flatMap(([name, plan]) =>
    plan === undefined ? [] : [[name, plan] as const],
  );
}
