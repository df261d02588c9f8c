// Answering machine detection events, each with its evidence. Call events, notifications and call
// contexts all use this format.

import { z } from 'zod';
import type { Immutable } from '../contract/schema.ts';
import type { AmdReason } from './amd-reasons.ts';

export const amdEventNames = [
  'amd_human_detected',
  'amd_machine_detected',
  'amd_no_speech_detected',
  'amd_decision_timeout',
  'amd_machine_stopped_speaking',
  'amd_tone_detected',
  'amd_error',
  'amd_stopped',
] as const;
export type AmdEventName = (typeof amdEventNames)[number];

export const amdVerdicts = [
  'amd_human_detected',
  'amd_machine_detected',
  'amd_no_speech_detected',
  'amd_decision_timeout',
  'amd_error',
] as const satisfies readonly AmdEventName[];

/**
 * used: the words in the transcript were counted. In all other cases we fell back to the acoustic
 * count. late: the transcript didn't cover everything that was said. failed: the provider failed.
 * unconfigured: this gateway has no provider by that name.
 */
export const transcriptionStates = ['used', 'late', 'failed', 'unconfigured'] as const;
export type TranscriptionState = (typeof transcriptionStates)[number];

/** The evidence for an event. Anything unknown is omitted. */
export const amdEvidence = z.object({
  reason: z
    .string()
    .describe(
      'why, in kebab-case, e.g. `long-greeting`, `tone`, `call-ended`; ends in `-transcription-…` if speech-to-text could not be used',
    ),
  elapsedMs: z.number().describe('time since the answer, by the sample clock'),
  words: z
    .number()
    .exactOptional()
    .describe('number of words in the greeting, estimated or from the transcript'),
  confidence: z.number().min(0).max(1).exactOptional(),
  speechMs: z.number().exactOptional(),
  pauseMs: z.number().exactOptional().describe('silence since the last speech'),
  unheardMs: z
    .number()
    .exactOptional()
    .describe(
      'audio that the gateway did not hear because it was overloaded, since this round of detection began. Packets lost in the network do not count',
    ),
  spanMs: z
    .number()
    .exactOptional()
    .describe('from the first speech to the last, including pauses'),
  tone: z.object({ hz: z.number(), ms: z.number() }).exactOptional(),
  round: z
    .number()
    .int()
    .min(2)
    .exactOptional()
    .describe('2, 3, … if detection began again after a call screening was answered'),
  corrects: z
    .enum(amdEventNames)
    .exactOptional()
    .describe('the earlier event that this one corrects'),
  transcript: z.string().exactOptional().describe('what the speech-to-text provider understood'),
  transcription: z
    .enum(transcriptionStates)
    .exactOptional()
    .describe(
      '`used`: the words of speech-to-text were counted; otherwise the acoustic count, because speech-to-text was `late`, `failed` or is `unconfigured`',
    ),
});
export type AmdEvidence = Immutable<z.infer<typeof amdEvidence>>;

export const amdEvent = z.object({ event: z.enum(amdEventNames), ...amdEvidence.shape });
export type AmdEvent = Immutable<z.infer<typeof amdEvent>>;

export const exampleAmdEvent: AmdEvent = {
  event: 'amd_human_detected',
  reason: 'short-greeting',
  elapsedMs: 1_640,
  words: 2,
  confidence: 0.93,
  speechMs: 620,
  pauseMs: 700,
  spanMs: 660,
};

/**
 * Returns the transcript of the machine's greeting. Prefers the latest event that has one, because
 * the machine has often only just started to speak when the verdict is reached.
 */
export function greetingOf(events: readonly AmdEvent[]): string | undefined {
  const machineEvents = events.filter(
    ({ event }) => event === 'amd_machine_detected' || event === 'amd_machine_stopped_speaking',
  );
  return machineEvents.findLast(({ transcript }) => transcript !== undefined)?.transcript;
}

const verdicts: ReadonlySet<AmdEventName> = new Set(amdVerdicts);

/** Returns the verdict of the last round that reached one. */
export function verdictOf(events: readonly AmdEvent[]): AmdEventName | undefined {
  return verdictEventOf(events)?.event;
}

/** Returns the event that stated the verdict of the last round that reached one. */
export function verdictEventOf(events: readonly AmdEvent[]): AmdEvent | undefined {
  const rounds = [...new Set(events.map(({ round = 1 }) => round))].reverse();
  for (const last of rounds) {
    const verdict = verdictOfRound(events.filter(({ round = 1 }) => round === last));
    if (verdict !== undefined) return verdict;
  }
  return undefined;
}

/** Returns the first verdict, unless a later event corrected it. Never returns `amd_stopped`. */
function verdictOfRound(events: readonly AmdEvent[]): AmdEvent | undefined {
  const correction = events.find((event) => event.corrects !== undefined);
  return correction ?? events.find((event) => verdicts.has(event.event));
}

/**
 * Builds the two closing events for a detection that can't close itself, because its worker died,
 * its call was lost, or it threw. Whichever process notices emits the error and then the stop. That
 * way, every detection ends with a stop, as the readers of events expect. If the call ended or was
 * lost without a detection failure, emit only the stop.
 */
export function closingAmdEvents(
  reason: AmdReason,
  elapsedMs: number,
  round = 1,
): readonly [error: AmdEvent, stopped: AmdEvent] {
  // `elapsedMs` is computed from two clocks, so it may be negative. No event may precede the
  // answer.
  const evidence = {
    reason,
    elapsedMs: Math.max(0, Math.round(elapsedMs)),
    ...(round === 1 ? {} : { round }),
  };
  return [
    { event: 'amd_error', ...evidence },
    { event: 'amd_stopped', ...evidence },
  ];
}
