// The member `bridge` of a dial-out request: whom a person is to be connected to, and what that comes to with the call's trunk and
// its app's rights.

import { z } from 'zod';
import type { DialTarget, MachineDetectionMode } from '../calls/call-types.ts';
import type { RoutePlanner } from '../calls/dialout-ports.ts';
import {
  defaultTransferTimeoutMs,
  type TransferPlan,
  type TransferRequest,
  transferFallbacks,
  transferModes,
  transferStarts,
} from '../calls/transfer.ts';
import type { MemberError } from '../http/problem.ts';
import { isSipUser, parseTarget } from './dial-target.ts';
import { checkTransferHeaders } from './transfer-headers.ts';

const to = z
  .string()
  .max(512)
  .transform((text, context) => {
    const result = parseTarget(text);
    if (result.ok) return result.target;
    context.addIssue({ code: 'custom', message: result.message });
    return z.NEVER;
  });

/** What a plan and a command share. */
const transferMembers = {
  to: to.describe('whom to call: `tel:` or `sip:`, like `target`'),
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
    .describe('what becomes of the call if nobody is reached and no bot has a stream'),
};

export const bridgeSchema = z.object({
  ...transferMembers,
  on: z
    .enum(transferStarts)
    .optional()
    .describe(
      '`person`: when detection says that a person is there, which needs `machineDetection`; `answered`: at the answer. Left out: `person` where detection runs',
    ),
});

/** The call that it belongs to. */
export type OfCall = {
  readonly caller: string;
  readonly trunk: string | undefined;
  readonly accountId: string;
  readonly routes: RoutePlanner;
};

export type ResolvedTransfer =
  | { readonly ok: true; readonly transfer: TransferRequest }
  | { readonly ok: false; readonly errors: readonly MemberError[] };

/** `prefix`: where its members stand, for messages. */
export function resolveTransfer(
  wanted: Omit<z.output<typeof bridgeSchema>, 'on'>,
  call: OfCall,
  prefix = '',
): ResolvedTransfer {
  const route = routeOf(wanted, call);
  const errors: MemberError[] = [];
  if (!route.ok) {
    const field = route.field === 'target' ? 'to' : route.field;
    errors.push({ path: `${prefix}${field}`, message: route.message });
  }
  const trunk = route.ok ? route.trunk : undefined;
  const carrier = wanted.mode === 'refer' ? call.trunk : trunk;
  const passes = (name: string): boolean =>
    carrier !== undefined && call.routes.passes(carrier, name);
  errors.push(...checkTransferHeaders(wanted.headers ?? {}, passes, prefix));
  if (errors.length > 0) return { ok: false, errors };
  const { mode, timeoutMs, caller = call.caller, keepStream, onFailure, headers } = wanted;
  return {
    ok: true,
    transfer: {
      ...{ to: wanted.to, mode, timeoutMs, caller, keepStream, onFailure },
      ...(trunk === undefined ? {} : { trunk }),
      ...(headers === undefined ? {} : { headers }),
    },
  };
}

/** The far end of a referral calls by its own ways. */
function routeOf(
  wanted: { readonly to: DialTarget; readonly mode: string; readonly trunk?: string | undefined },
  { trunk, accountId, routes }: OfCall,
): ReturnType<RoutePlanner['plan']> {
  if (wanted.mode === 'refer') {
    return wanted.trunk === undefined
      ? { ok: true }
      : { ok: false, field: 'trunk', message: 'a referral goes by the trunk of the call' };
  }
  const ofCall = wanted.to.kind === 'tel' ? trunk : undefined;
  return routes.plan(wanted.to, wanted.trunk ?? ofCall, accountId);
}

export type ResolvedPlan =
  | { readonly ok: true; readonly bridge?: TransferPlan }
  | { readonly ok: false; readonly errors: readonly MemberError[] };

export function resolveBridge(
  wanted: z.output<typeof bridgeSchema> | undefined,
  call: OfCall,
  machineDetection: MachineDetectionMode,
): ResolvedPlan {
  if (wanted === undefined) return { ok: true };
  const detects = machineDetection !== 'disabled';
  const { on = detects ? 'person' : 'answered', ...members } = wanted;
  const resolved = resolveTransfer(members, call, 'bridge.');
  const errors = resolved.ok ? [] : [...resolved.errors];
  if (on === 'person' && !detects) {
    const message = 'person needs machineDetection: detect or disconnect';
    errors.push({ path: 'bridge.on', message });
  }
  if (errors.length > 0 || !resolved.ok) return { ok: false, errors };
  return { ok: true, bridge: { ...resolved.transfer, on } };
}
