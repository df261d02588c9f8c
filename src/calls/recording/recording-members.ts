// The `recording` field of a dial-out request and of a bot's registration.

import { z } from 'zod';
import { soundReference } from '../playback/sound-reference.ts';
import { recordingBegins, recordingFills } from './recording.ts';

/** Records are kept for five years; a recording that must be kept longer belongs elsewhere. */
const maxRetentionDays = 3_650;

/**
 * @param notifyUrl the schema of a URL that receives notifications
 */
export function recordingMemberWith(notifyUrl: z.ZodType<string, string>) {
  return z.object({
    from: z
      .enum(recordingBegins)
      .exactOptional()
      .describe(
        '`answer`: at the 200 OK; `person`: at the first verdict `amd_human_detected`, even if detection corrects it later, which needs `machineDetection`; `command`: only when the command `record` starts it. Default: `answer`',
      ),
    announce: soundReference
      .exactOptional()
      .describe(
        'played to the person before recording begins; nobody talks over it. If it is cut off, because a sound announces the end of the call, nothing is recorded. `sound:<name>` or an `https:` URL',
      ),
    pauseOnKeys: z
      .boolean()
      .exactOptional()
      .describe(
        'pauses from 200 ms before the first key that the far end presses until 5 s after the last one. Default: false',
      ),
    fill: z
      .enum(recordingFills)
      .exactOptional()
      .describe(
        'what a pause becomes: `silence` of the same length, or nothing (`cut`). Default: `silence`',
      ),
    retentionDays: z
      .number()
      .int()
      .min(1)
      .max(maxRetentionDays)
      .exactOptional()
      .describe('when the recording is deleted. Default: `RECORDING_RETENTION_DAYS`'),
    key: z
      .string()
      .regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, "_" or "-"')
      .exactOptional()
      .describe(
        'name of the account’s public key for which the recording is encrypted (`offhook keys add`). Default: not encrypted',
      ),
    notifyurl: notifyUrl
      .exactOptional()
      .describe(
        'receives one POST when a recording that began is stored or can’t be, which is not one of the call’s notifications',
      ),
    required: z
      .boolean()
      .exactOptional()
      .describe('ends the call if it can’t be recorded. Default: false'),
  });
}

export type WantedRecording = z.output<ReturnType<typeof recordingMemberWith>>;
