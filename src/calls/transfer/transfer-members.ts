// The fields of a transfer, used in `bridge` of a dial-out request and in the `transfer` command.

import { z } from 'zod';
import { callerMembers } from '../caller/caller-members.ts';
import { maxRingTimeoutMs } from '../dialout-limits.ts';
import { isBareNumber, isSipUser, parseTarget, targetMember } from '../target/parse-target.ts';
import {
  defaultTransferTimeoutMs,
  transferFallbacks,
  transferModes,
  transferStarts,
} from './transfer.ts';

const transferTargetMeaning = 'whom to call: `tel:` or `sip:`, like `target`';

/**
 * The target stays a string, because a command is passed on unchanged to the process that owns the
 * call. Only that process can parse it: how to read a number without `+` depends on the app.
 */
export const transferTarget = z
  .string()
  .max(512)
  .superRefine((text, context) => {
    const result = isBareNumber(text) ? undefined : parseTarget(text);
    if (result?.ok === false) context.addIssue({ code: 'custom', message: result.message });
  })
  .describe(transferTargetMeaning);

/** The fields that `bridge` and the command share. Only `to` differs. */
export const transferMembers = {
  mode: z
    .enum(transferModes)
    .default('bridge')
    .describe(
      '`bridge`: the gateway places a second leg and relays the audio; `refer`: the gateway asks the carrier of the first leg to call the agent (REFER), and this call ends',
    ),
  timeoutMs: z
    .number()
    .overwrite(Math.round)
    .min(1_000)
    .max(maxRingTimeoutMs)
    .default(defaultTransferTimeoutMs)
    .describe('how long to wait for an answer, or for the end of a referral'),
  caller: z
    .string()
    .refine(isSipUser, 'must be 1 to 128 characters of the user part of a SIP URI')
    .optional()
    .describe("caller ID of the second leg; default: the call's own"),
  callerName: callerMembers.callerName.describe(
    "display name of the caller on the second leg, like `callerName` of the call. Default: the call's own, if the second leg also has the call's caller ID",
  ),
  identity: callerMembers.identity.describe(
    'value of the `Identity` header (RFC 8224) of the second leg. At most 2,048 bytes, together with `headers` and twice `callerName`',
  ),
  trunk: z
    .string()
    .min(1)
    .max(64)
    .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'must not contain control characters')
    .optional()
    .describe(
      "trunk of the second leg. Default: for `tel:`, the call's own or else the default trunk; for `sip:`, no trunk. Not for a referral, which goes to the call's own far end",
    ),
  headers: z
    .record(z.string(), z.string())
    .optional()
    .describe(
      'further headers of the INVITE or REFER, e.g. `X-` headers. A header that the gateway writes itself is rejected with 400; `P-` headers and `Diversion` pass only if the trunk lists them (`passHeaders`)',
    ),
  keepStream: z
    .boolean()
    .default(false)
    .describe(
      'true: the bot keeps hearing the person before and after the answer. Default: it hears silence from the INVITE on, and its stream ends at the answer',
    ),
  onFailure: z
    .enum(transferFallbacks)
    .default('hangup')
    .describe('what happens to the call if no agent is reached and no bot has a stream'),
};

/** The `bridge` field of a dial-out request. */
export const bridgeMember = z.object({
  to: targetMember.describe(transferTargetMeaning),
  ...transferMembers,
  on: z
    .enum(transferStarts)
    .optional()
    .describe(
      '`person`: when detection finds a person, which needs `machineDetection`; `answered`: at the answer. Default: `person` if detection runs',
    ),
});
