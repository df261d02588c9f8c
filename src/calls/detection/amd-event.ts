// Events of answering machine detection, each with the evidence that it rests on: the same in events, in notifications and in a
// call's context.

import { z } from 'zod';
import type { Immutable } from '../contract/schema.ts';

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

/** Those that say what detection came to. */
export const amdVerdicts = [
  'amd_human_detected',
  'amd_machine_detected',
  'amd_no_speech_detected',
  'amd_decision_timeout',
  'amd_error',
] as const satisfies readonly AmdEventName[];

/**
 * used: the transcript's words were counted. late: the transcript did not cover what was said, the acoustic count stood in.
 * failed, unconfigured: the same, because the provider failed, or this gateway has none of that name (any more).
 */
export const transcriptionStates = ['used', 'late', 'failed', 'unconfigured'] as const;
export type TranscriptionState = (typeof transcriptionStates)[number];

/** Members are present where they are known. */
export const amdEvidence = z.object({
  reason: z
    .string()
    .describe(
      'why, in kebab-case, e.g. `long-greeting`, `tone`, `call-ended`; ends in `-transcription-…` where speech-to-text was of no help',
    ),
  elapsedMs: z.number().describe('from the answer, by the sample clock'),
  words: z
    .number()
    .exactOptional()
    .describe('words of the greeting, estimated or of the transcript'),
  confidence: z.number().min(0).max(1).exactOptional(),
  speechMs: z.number().exactOptional(),
  pauseMs: z.number().exactOptional().describe('silence since the last speech'),
  tone: z.object({ hz: z.number(), ms: z.number() }).exactOptional(),
  round: z
    .number()
    .int()
    .min(2)
    .exactOptional()
    .describe('detection began anew, after a call screening was answered: 2, 3, …'),
  corrects: z.enum(amdEventNames).exactOptional().describe('the event that this one takes back'),
  transcript: z.string().exactOptional().describe('what the speech-to-text provider understood'),
  transcription: z
    .enum(transcriptionStates)
    .exactOptional()
    .describe(
      'what became of speech-to-text: `used`, or the acoustic count was taken as it was `late`, `failed` or is `unconfigured`',
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
};

/** What a machine said as far as it was understood: at the verdict it has often only begun. */
export function greetingOf(events: readonly AmdEvent[]): string | undefined {
  const ofMachine = events.filter(
    ({ event }) => event === 'amd_machine_detected' || event === 'amd_machine_stopped_speaking',
  );
  return ofMachine.findLast(({ transcript }) => transcript !== undefined)?.transcript;
}

const verdicts: ReadonlySet<AmdEventName> = new Set(amdVerdicts);

/** What detection came to, in the last round that came to anything. */
export function verdictOf(events: readonly AmdEvent[]): AmdEventName | undefined {
  const rounds = [...new Set(events.map(({ round = 1 }) => round))].reverse();
  for (const last of rounds) {
    const verdict = verdictOfRound(events.filter(({ round = 1 }) => round === last));
    if (verdict !== undefined) return verdict;
  }
  return undefined;
}

/** The first verdict, unless a later event took it back. Never `amd_stopped`. */
function verdictOfRound(events: readonly AmdEvent[]): AmdEventName | undefined {
  const correction = events.find((event) => event.corrects !== undefined);
  return correction?.event ?? events.find((event) => verdicts.has(event.event))?.event;
}

/**
 * Close a detection that does not close itself: its worker died, its call was lost, it threw. The process that finds that out states
 * these two, so that the grammar holds: an error, and the stop that ends every detection. Where detection did not fail, but its call
 * ended or was lost, only the stop is owed.
 */
export function closingAmdEvents(
  reason: string,
  elapsedMs: number,
  round = 1,
): readonly [error: AmdEvent, stopped: AmdEvent] {
  // Two clocks may have been read: the second never says that it was before the answer.
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
