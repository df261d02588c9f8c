// What an AMD event rests on, for the OpenAPI document: the same members in notifications and in a call's context.

import { z } from 'zod';
import { amdEventNames, transcriptionStates } from '../calls/call-types.ts';

export const amdEvidenceMembers = {
  reason: z
    .string()
    .describe('why, in kebab-case; ends in `-transcription-…` where speech-to-text was of no help'),
  elapsedMs: z.number().describe('from the answer, by the sample clock'),
  words: z.number().optional().describe('words of the greeting, estimated or of the transcript'),
  confidence: z.number().min(0).max(1).optional(),
  speechMs: z.number().optional(),
  pauseMs: z.number().optional().describe('silence since the last speech'),
  tone: z.object({ hz: z.number(), ms: z.number() }).optional(),
  corrects: z.enum(amdEventNames).optional().describe('the event that this one takes back'),
  transcript: z.string().optional().describe('what the speech-to-text provider understood'),
  transcription: z
    .enum(transcriptionStates)
    .optional()
    .describe(
      'what became of speech-to-text: `used`, or the acoustic count was taken as it was `late`, `failed` or is `unconfigured`',
    ),
};
