// What a call's record keeps besides the columns of the call: facts that the machine notes during
// the call and stores with its end. They outlive the call's events, so each is short.

import type { CallEvent, EventOf } from '../contract/call-event.ts';
import type { OptOutWay } from '../opt-out/opt-outs.ts';

/** The sound that was played, so that its exact audio can be identified years later. */
export type PlayedSound = {
  /** `sound:<name>`, or the URL without its query. */
  readonly name: string;
  /**
   * SHA-256 of the 8 kHz µ-law audio, in hexadecimal digits. Omitted if another process played the
   * sound and died before the end of the call: events name sounds, but don't contain their hash.
   */
  readonly sha256?: string;
};

/** To whom or what the person was connected. */
export type Connection = {
  readonly with: 'bot' | 'agent';
  /** When the bot received the audio, or when the agent answered. */
  readonly at: string;
  /** `tel:` or `sip:` URI of the agent. */
  readonly to?: string;
};

/** How and when the person asked not to be called any more. */
export type OptedOut = { readonly by: OptOutWay; readonly at: string };

/** What the person was told about the recording, and when the call was recorded. */
export type RecordedCall = {
  /** The announcement before the recording. */
  readonly announcement?: PlayedSound;
  /** When the announcement had been played to its end. */
  readonly announcedAt?: string;
  readonly startedAt?: string;
  /** Omitted if the gateway died during the recording. */
  readonly endedAt?: string;
};

/**
 * Why the call counted as abandoned when the two seconds were over. If detection corrects its
 * verdict later, the outcomes of the record say so, and this stays.
 */
export type Abandoned = Pick<
  EventOf<'abandoned'>['data'],
  'formula' | 'missing' | 'greetingEndedMs'
> & { readonly at: string };

export type CallEvidence = {
  /** The different sounds that were played, in the order in which they first began. */
  readonly sounds?: readonly PlayedSound[];
  /** The first bot, and each agent. */
  readonly connections?: readonly Connection[];
  readonly optedOut?: OptedOut;
  readonly abandoned?: Abandoned;
  readonly recording?: RecordedCall;
};

/** A command may play sounds endlessly. A call that means something plays a few. */
const maxSounds = 100;

/**
 * Returns the evidence after an event.
 *
 * @param sha256 the hash of the sound that the event names, if this process plays it
 */
export function evidenceAfter(
  evidence: CallEvidence,
  event: CallEvent,
  sha256?: string,
): CallEvidence {
  const recorded = recordedAfter(evidence, event, sha256);
  if (recorded !== undefined) return after({ ...evidence, recording: recorded }, event, sha256);
  return after(evidence, event, sha256);
}

function after(evidence: CallEvidence, event: CallEvent, sha256?: string): CallEvidence {
  const { sounds = [], connections = [] } = evidence;
  if (event.type === 'playback-started') {
    const played = soundOf(event, sha256);
    const isKnown = sounds.some((one) => one.name === played.name && one.sha256 === sha256);
    if (isKnown || sounds.length === maxSounds) return evidence;
    return { ...evidence, sounds: [...sounds, played] };
  }
  if (event.type === 'stream-started' && !connections.some((one) => one.with === 'bot')) {
    return { ...evidence, connections: [...connections, { with: 'bot', at: event.time }] };
  }
  if (event.type === 'opted-out') {
    return { ...evidence, optedOut: { by: event.data.by, at: event.time } };
  }
  if (event.type === 'abandoned') {
    const { formula, missing, greetingEndedMs } = event.data;
    const greeting = greetingEndedMs === undefined ? {} : { greetingEndedMs };
    return { ...evidence, abandoned: { at: event.time, formula, missing, ...greeting } };
  }
  if (event.type !== 'transfer-answered') return evidence;
  const agent = { with: 'agent', at: event.time, to: event.data.to } as const;
  return { ...evidence, connections: [...connections, agent] };
}

function soundOf({ data }: EventOf<'playback-started'>, sha256?: string): PlayedSound {
  return { name: data.sound, ...(sha256 === undefined ? {} : { sha256 }) };
}

/** @returns undefined if the event isn't about the recording */
function recordedAfter(
  { recording }: CallEvidence,
  event: CallEvent,
  sha256?: string,
): RecordedCall | undefined {
  if (event.type === 'playback-started') {
    if (event.data.source !== 'recording') return undefined;
    return { ...recording, announcement: soundOf(event, sha256) };
  }
  if (event.type === 'playback-finished') {
    if (event.data.source !== 'recording' || event.data.reason !== 'done') return undefined;
    return { ...recording, announcedAt: event.time };
  }
  if (event.type === 'recording-started') {
    return { ...recording, startedAt: event.data.startedAt };
  }
  if (event.type !== 'recording-stopped' && event.type !== 'recording-failed') return undefined;
  return recording?.startedAt === undefined ? undefined : { ...recording, endedAt: event.time };
}

/** Returns the ending's member. An ordinary call without evidence has none. */
export function evidenceIn({ evidence }: { readonly evidence: CallEvidence }): {
  readonly evidence?: CallEvidence;
} {
  return Object.keys(evidence).length === 0 ? {} : { evidence };
}
