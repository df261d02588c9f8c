// Resolves a transfer's trunk, caller ID and headers, both for the `bridge` field of a dial-out
// request and for the `transfer` command.

import type { z } from 'zod';
import type { DialTarget, MachineDetectionMode } from '../call-types.ts';
import { checkAddedHeaders } from '../caller/added-headers.ts';
import { callerDetailsOf } from '../caller/caller-members.ts';
import type { CommandOf } from '../contract/command.ts';
import type { MemberError } from '../contract/schema.ts';
import type { RoutePlanner } from '../dialout-ports.ts';
import { uriOfTarget } from '../target/dial-target.ts';
import { type NumberReading, readingFor } from '../target/number-reading.ts';
import { isBareNumber, parseTarget } from '../target/parse-target.ts';
import type { TransferPlan, TransferRequest } from './transfer.ts';
import type { bridgeMember } from './transfer-members.ts';

type WantedPlan = z.output<typeof bridgeMember>;

export type TransferringCall = {
  readonly caller: string;
  readonly callerName?: string | undefined;
  readonly trunk: string | undefined;
  readonly accountId: string;
  readonly routes: RoutePlanner;
};

export type ResolvedTransfer =
  | { readonly ok: true; readonly transfer: TransferRequest }
  | { readonly ok: false; readonly errors: readonly MemberError[] };

/** Resolves a transfer. `prefix` comes before the field names in error paths. */
export function resolveTransfer(
  wanted: Omit<WantedPlan, 'on'>,
  call: TransferringCall,
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
  const passes =
    carrier === undefined ? undefined : (name: string) => call.routes.passes(carrier, name);
  const added = { ...wanted, callerName: nameOf(wanted, call) };
  errors.push(...checkAddedHeaders(added, { mustPass: 'trusted', passes }, prefix));
  if (errors.length > 0) return { ok: false, errors };
  const { mode, timeoutMs, caller = call.caller, keepStream, onFailure, headers } = wanted;
  return {
    ok: true,
    transfer: {
      ...{ to: wanted.to, mode, timeoutMs, caller, keepStream, onFailure },
      ...callerDetailsOf(added),
      ...(trunk === undefined ? {} : { trunk }),
      ...(headers === undefined ? {} : { headers }),
    },
  };
}

/** The name of the call belongs to its caller ID, so another caller ID has no name by default. */
function nameOf(wanted: Omit<WantedPlan, 'on'>, call: TransferringCall): string | undefined {
  return wanted.callerName ?? (wanted.caller === undefined ? call.callerName : undefined);
}

/**
 * Returns the second leg's route. A referral doesn't need one, because the far end places the call.
 */
function routeOf(
  wanted: Pick<WantedPlan, 'to' | 'mode' | 'trunk' | 'caller'>,
  { trunk, accountId, routes, caller }: TransferringCall,
): ReturnType<RoutePlanner['plan']> {
  if (wanted.mode === 'refer') {
    return wanted.trunk === undefined
      ? referralOf(wanted.to, { trunk, accountId, routes })
      : { ok: false, field: 'trunk', message: "a referral uses the call's own trunk" };
  }
  const trunkOfCall = wanted.to.kind === 'sip' ? undefined : trunk;
  return routes.plan(wanted.to, wanted.trunk ?? trunkOfCall, accountId, wanted.caller ?? caller);
}

/** Checks that the call's trunk can write the number into Refer-To. */
function referralOf(
  to: DialTarget,
  { trunk, accountId, routes }: Pick<TransferringCall, 'trunk' | 'accountId' | 'routes'>,
): ReturnType<RoutePlanner['plan']> {
  const route = trunk === undefined ? undefined : routes.plan(to, trunk, accountId);
  return route?.ok === false && route.field === 'target' ? route : { ok: true };
}

export type ResolvedPlan =
  | { readonly ok: true; readonly bridge?: TransferPlan }
  | { readonly ok: false; readonly errors: readonly MemberError[] };

export function resolveBridge(
  wanted: WantedPlan | undefined,
  call: TransferringCall,
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

type GlobalTransfer<Transfer> =
  | { readonly ok: true; readonly transfer: Transfer; readonly to?: string }
  | { readonly ok: false; readonly errors: readonly MemberError[] };

/**
 * Rewrites a number without `+` as a global number, using the settings of the app that sent the
 * command. That app's limits can then be checked.
 *
 * @returns `to` only if the number was written without `+`
 */
export function withGlobalNumber<Transfer extends CommandOf<'transfer'>>(
  transfer: Transfer,
  app: NumberReading,
): GlobalTransfer<Transfer> {
  if (!isBareNumber(transfer.to)) return { ok: true, transfer };
  const result = parseTarget(transfer.to, readingFor(transfer, app));
  if (!result.ok) return { ok: false, errors: [{ path: 'to', message: result.message }] };
  const to = uriOfTarget(result.target);
  return { ok: true, transfer: { ...transfer, to }, to };
}
