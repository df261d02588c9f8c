// What a call's record keeps besides the columns of the call: facts that the machine notes during
// the call and stores with its end. They outlive the call's events, so each is short.

import type { CallEvent } from '../contract/call-event.ts';
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

export type CallEvidence = {
  /** The different sounds that were played, in the order in which they first began. */
  readonly sounds?: readonly PlayedSound[];
  /** The first bot, and each agent. */
  readonly connections?: readonly Connection[];
  readonly optedOut?: OptedOut;
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
  const { sounds = [], connections = [] } = evidence;
  if (event.type === 'playback-started') {
    const { sound: name } = event.data;
    const isKnown = sounds.some((one) => one.name === name && one.sha256 === sha256);
    if (isKnown || sounds.length === maxSounds) return evidence;
    const played = { name, ...(sha256 === undefined ? {} : { sha256 }) };
    return { ...evidence, sounds: [...sounds, played] };
  }
  if (event.type === 'stream-started' && !connections.some((one) => one.with === 'bot')) {
    return { ...evidence, connections: [...connections, { with: 'bot', at: event.time }] };
  }
  if (event.type === 'opted-out') {
    return { ...evidence, optedOut: { by: event.data.by, at: event.time } };
  }
  if (event.type !== 'transfer-answered') return evidence;
  const agent = { with: 'agent', at: event.time, to: event.data.to } as const;
  return { ...evidence, connections: [...connections, agent] };
}

/** Returns the ending's member. An ordinary call without evidence has none. */
export function evidenceIn({ evidence }: { readonly evidence: CallEvidence }): {
  readonly evidence?: CallEvidence;
} {
  return Object.keys(evidence).length === 0 ? {} : { evidence };
}
