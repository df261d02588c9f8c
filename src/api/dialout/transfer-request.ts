// The member `bridge` of a dial-out request: whom a person is to be connected to, and what that comes to with the call's trunk and
// its app's rights.

import { z } from 'zod';
import type { DialTarget, MachineDetectionMode } from '../../calls/call-types.ts';
import type { RoutePlanner } from '../../calls/dialout-ports.ts';
import { parseTarget } from '../../calls/target/parse-target.ts';
import {
  type TransferPlan,
  type TransferRequest,
  transferStarts,
} from '../../calls/transfer/transfer.ts';
import { transferMembers, transferTargetMeaning } from '../../calls/transfer/transfer-members.ts';
import type { MemberError } from '../../http/problem.ts';
import { checkTransferHeaders } from './transfer-headers.ts';

/** The number or SIP address to call, in a dial-out and in a transfer. */
export const targetSchema = z
  .string()
  .max(512)
  .transform((text, context) => {
    const result = parseTarget(text);
    if (result.ok) return result.target;
    context.addIssue({ code: 'custom', message: result.message });
    return z.NEVER;
  });

export const bridgeSchema = z.object({
  to: targetSchema.describe(transferTargetMeaning),
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
