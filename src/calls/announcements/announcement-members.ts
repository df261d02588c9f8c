// The fields of a dial-out request that name announcements.

import type { MachineDetectionMode } from '../call-types.ts';
import type { MemberError } from '../contract/schema.ts';
import { soundNotReachable, soundReference } from '../playback/sound-reference.ts';
import { announcementKinds } from './announcements.ts';

export const announcementMembers = {
  abandonedSound: soundReference
    .exactOptional()
    .describe(
      'played to a person whom nobody was connected to in time, beginning within two seconds of the greeting; the call ends after it. Needs `campaign`, detection, and a rule set: `sound:<name>` or an `https:` URL',
    ),
  optOutSound: soundReference
    .exactOptional()
    .describe(
      'played to a person who opted out, by `optOutKey` or by the command `optOut`; the call ends after it. `sound:<name>` or an `https:` URL',
    ),
};

type WantedAnnouncements = {
  readonly abandonedSound?: string;
  readonly optOutSound?: string;
  readonly campaign?: string | undefined;
  readonly machineDetection: MachineDetectionMode;
};

/** Checks that an announcement can ever be played, and that we may fetch it from its URL. */
export function announcementErrors(
  wanted: WantedAnnouncements,
  isReachable: (reference: string) => boolean,
): readonly MemberError[] {
  const errors = announcementKinds.flatMap((path) => {
    const reference = wanted[path];
    const isFine = reference === undefined || isReachable(reference);
    return isFine ? [] : [{ path, message: soundNotReachable }];
  });
  if (wanted.abandonedSound === undefined) return errors;
  const path = 'abandonedSound';
  if (wanted.machineDetection === 'disabled') {
    return [...errors, { path, message: 'needs machineDetection: detect or disconnect' }];
  }
  return wanted.campaign === undefined ? [...errors, { path, message: 'needs campaign' }] : errors;
}
