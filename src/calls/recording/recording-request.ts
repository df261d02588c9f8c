// Resolves the recording of a dial-out request from its `recording` field and the bot's
// registration, and checks what it names.

import type { MemberError } from '../contract/schema.ts';
import { soundNotReachable } from '../playback/sound-reference.ts';
import type { RequestedRecording } from './recording.ts';
import type { WantedRecording } from './recording-members.ts';

/** A bot's default. The request's members replace its members one by one. */
export type RegisteredRecording = Partial<RequestedRecording>;

/** `true` records with the bot's settings, or the defaults. `false` forbids to record the call. */
export type RecordingChoice = WantedRecording | boolean;

type ResolveOptions = {
  readonly bot: { readonly recording?: RegisteredRecording };
  readonly detects: boolean;
  readonly checks: RecordingChecks;
};

export type RecordingChecks = {
  readonly isSoundReachable: (reference: string) => boolean;
  readonly isNotifiable: (url: URL) => boolean;
  /** Why the key of the recording can't be used. Undefined if it can, or without a key. */
  readonly keyProblem: string | undefined;
};

export type ResolvedRecording =
  | { readonly ok: true; readonly recording?: RequestedRecording | false }
  | { readonly ok: false; readonly errors: readonly MemberError[] };

/** Resolves the recording. If `wanted` is undefined, the bot's default applies, if it has one. */
export function resolveRecording(
  wanted: RecordingChoice | undefined,
  { bot, detects, checks }: ResolveOptions,
): ResolvedRecording {
  if (wanted === false) return { ok: true, recording: false };
  if (wanted === undefined && bot.recording === undefined) return { ok: true };
  const own = typeof wanted === 'object' ? toSettings(wanted) : {};
  const settings = { ...bot.recording, ...own };
  const errors = recordingErrors(settings, checks);
  if (own.from === 'person' && !detects) {
    const message = 'person needs machineDetection: detect or disconnect';
    errors.push({ path: 'recording.from', message });
  }
  if (errors.length > 0) return { ok: false, errors };
  const { from = 'answer', pauseOnKeys = false, fill = 'silence', required = false } = settings;
  return {
    ok: true,
    recording: {
      ...settings,
      // Without detection, everybody is taken for a person, as for streams.
      from: from === 'person' && !detects ? 'answer' : from,
      ...{ pauseOnKeys, fill, required },
    },
  };
}

/** Returns the settings in the spelling in which they are stored. */
export function toSettings({ notifyurl, ...others }: WantedRecording): RegisteredRecording {
  return { ...others, ...(notifyurl === undefined ? {} : { notifyUrl: notifyurl }) };
}

/** Returns the name of the key for which the recording would be encrypted. */
export function keyOf(
  choice: unknown,
  bot: { readonly recording?: RegisteredRecording },
): string | undefined {
  if (choice === false) return undefined;
  const own = (choice ?? {}) as { readonly key?: unknown };
  return typeof own.key === 'string' ? own.key : bot.recording?.key;
}

/** Checks the addresses and the key that the settings name. */
export function recordingErrors(
  { announce, notifyUrl }: RegisteredRecording,
  { isSoundReachable, isNotifiable, keyProblem }: RecordingChecks,
): MemberError[] {
  const errors: MemberError[] = [];
  if (announce !== undefined && !isSoundReachable(announce)) {
    errors.push({ path: 'recording.announce', message: soundNotReachable });
  }
  if (notifyUrl !== undefined && !isNotifiable(new URL(notifyUrl))) {
    errors.push({ path: 'recording.notifyurl', message: notNotifiable });
  }
  if (keyProblem !== undefined) errors.push({ path: 'recording.key', message: keyProblem });
  return errors;
}

export const noSuchKey = 'the account has no key of this name: add it with `offhook keys add`';

export const notNotifiable =
  'must not be a private, local or reserved address, unless NOTIFY_ALLOWED_NETWORKS contains it';
