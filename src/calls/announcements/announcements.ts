// Announcements: sounds of a request that the call plays to the person before it ends, because
// nobody came (`abandonedSound`), or because the person opted out (`optOutSound`).

import type { AcceptedCall } from '../call-types.ts';
import { loadRequestedSound } from '../playback/load-sound.ts';
import type { Sound } from '../playback/playback.ts';
import type { SoundPort } from '../ports.ts';

/** The sounds by the member of the request that names them. */
export const announcementKinds = ['abandonedSound', 'optOutSound'] as const;
export type AnnouncementKind = (typeof announcementKinds)[number];

export type Announcements = ReadonlyMap<AnnouncementKind, Sound>;

export type LoadedAnnouncements =
  | { readonly ok: true; readonly announcements: Announcements }
  /** `reason` is meant for people. */
  | { readonly ok: false; readonly reason: string };

/** Loads the announcements that the request names. Never rejects. */
export async function loadAnnouncements(
  { accountId, request }: AcceptedCall,
  sounds: SoundPort | undefined,
): Promise<LoadedAnnouncements> {
  const announcements = new Map<AnnouncementKind, Sound>();
  for (const kind of announcementKinds) {
    const loaded = await loadRequestedSound(request[kind], accountId, sounds);
    if (loaded?.ok === false) return { ok: false, reason: `${kind}: ${loaded.reason}` };
    if (loaded !== undefined) announcements.set(kind, loaded.sound);
  }
  return { ok: true, announcements };
}
