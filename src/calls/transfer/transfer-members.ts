// How a transfer is asked for, by the plan of a dial-out request or by a command.

import { z } from 'zod';
import { isBareNumber, isSipUser, parseTarget, targetMember } from '../target/parse-target.ts';
import {
  defaultTransferTimeoutMs,
  transferFallbacks,
  transferModes,
  transferStarts,
} from './transfer.ts';

const transferTargetMeaning = 'whom to call: `tel:` or `sip:`, like `target`';

/**
 * Stays a text, because a command is handed on as it came to the process that has the call. How a
 * number without `+` is read depends on the app as well, and is decided there.
 */
export const transferTarget = z
  .string()
  .max(512)
  .superRefine((text, context) => {
    const result = isBareNumber(text) ? undefined : parseTarget(text);
    if (result?.ok === false) context.addIssue({ code: 'custom', message: result.message });
  })
  .describe(transferTargetMeaning);

/** What a plan and a command share, beside whom to call. */
export const transferMembers = {
  mode: z
    .enum(transferModes)
    .default('bridge')
    .describe(
      '`bridge`: a second leg is called and the audio relayed here; `refer`: the carrier of the first leg is asked to call them (REFER), and this call ends',
    ),
  timeoutMs: z
    .number()
    .overwrite(Math.round)
    .min(1_000)
    .max(180_000)
    .default(defaultTransferTimeoutMs)
    .describe('how long to wait for an answer, or for the end of a referral'),
  caller: z
    .string()
    .refine(isSipUser, 'must be 1 to 128 characters of the user part of a SIP URI')
    .optional()
    .describe("caller ID of the second leg; left out: the call's own"),
  trunk: z
    .string()
    .min(1)
    .max(64)
    .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'must not contain control characters')
    .optional()
    .describe(
      "of the second leg; left out: the call's, or the default, for `tel:`, no trunk for `sip:`. A referral goes to the call's own far end",
    ),
  headers: z
    .record(z.string(), z.string())
    .optional()
    .describe(
      'more headers of the INVITE or REFER, `X-` and the like. What the gateway writes itself is a 400; `P-` headers and `Diversion` pass only where the trunk lists them (`passHeaders`)',
    ),
  keepStream: z
    .boolean()
    .default(false)
    .describe(
      'true: the bot hears the person before and after. Left out: it hears silence from the INVITE on, and its stream ends at the answer',
    ),
  onFailure: z
    .enum(transferFallbacks)
    .default('hangup')
    .describe('what becomes of the call if no agent is reached and no bot has a stream'),
};

/** The member `bridge` of a dial-out request. */
export const bridgeMember = z.object({
  to: targetMember.describe(transferTargetMeaning),
  ...transferMembers,
  on: z
    .enum(transferStarts)
    .optional()
    .describe(
      '`person`: when detection says that a person is there, which needs `machineDetection`; `answered`: at the answer. Left out: `person` where detection runs',
    ),
});
