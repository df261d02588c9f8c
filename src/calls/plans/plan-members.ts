// The `voicemail` and `screening` fields of a dial-out request. These plans run after the verdict
// without any command.

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
    .describe('what to do if no beep comes in time: `play` leaves the message, `hangup` does not'),
  waitForBeepMs: milliseconds(500, 30_000)
    .default(4_000)
    .describe('how long to wait for a beep, from the last word of the greeting'),
  maxMs: milliseconds(1_000, 600_000)
    .default(60_000)
    .describe(
      'longest time from the first start of the message to the hang-up, including restarts',
    ),
});

export const screeningMember = z.object({ play: soundReference });

type WantedPlans = {
  readonly voicemail?: { readonly play: string } | undefined;
  readonly screening?: { readonly play: string } | undefined;
};

/**
 * Checks that `machineDetection` is `detect`. Plans act on the verdict, and in `disconnect` mode
 * the call would already have been hung up.
 */
export function planErrors(
  wanted: WantedPlans,
  machineDetection: MachineDetectionMode,
): readonly MemberError[] {
  if (machineDetection === 'detect') return [];
  return plansOf(wanted).map(([path]) => ({ path, message: 'needs machineDetection: detect' }));
}

/**
 * Checks where the sounds are stored. `isReachable` tells whether we may fetch a sound from its
 * URL.
 */
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
