// Checks a dial-out request against the rule set that applies to it. These rules concern what the
// request says, so a request that breaks them gets a 400. The other rules are checked when the call
// is taken (`decide.ts`).

import type { MachineDetectionMode } from '../calls/call-types.ts';
import type { MemberError } from '../calls/contract/schema.ts';
import { maxHeldQueueTimeoutMs, maxQueueTimeoutMs } from '../calls/dialout-limits.ts';
import type { Consent } from '../calls/rules/consent.ts';
import type { Rules } from './compile-rules.ts';

/** The names are those of the API. */
export type RequestToCheck = {
  readonly consent?: Consent | undefined;
  readonly machineDetection: MachineDetectionMode;
  readonly timeoutInMs: number;
  readonly queueTimeoutMs?: number | undefined;
};

/** Clocks of the account's systems may be ahead of ours. */
const maxClockSkewMs = 5 * 60_000;

/**
 * @param ruleSet the rule set that applies. Undefined if the account has no rules for this request
 */
export function requestErrors(
  request: RequestToCheck,
  ruleSet: { readonly name: string; readonly rules: Rules } | undefined,
  now: Date,
): readonly MemberError[] {
  const { timeoutInMs, queueTimeoutMs = 0, machineDetection } = request;
  const errors: MemberError[] = [];
  const add = (path: string, message: string): void => {
    errors.push({ path, message });
  };
  const maxMs = ruleSet?.rules.hours === undefined ? maxQueueTimeoutMs : maxHeldQueueTimeoutMs;
  if (queueTimeoutMs > maxMs) {
    const unless = maxMs === maxQueueTimeoutMs ? ', because no rule set with hours applies' : '';
    add('queueTimeoutMs', `must be at most ${maxMs}${unless}`);
  }
  errors.push(...consentErrors(request, ruleSet, now));
  if (ruleSet === undefined) return errors;
  const { ringAtLeastMs, abandoned } = ruleSet.rules;
  if (ringAtLeastMs !== undefined && timeoutInMs < ringAtLeastMs) {
    const message = `must be at least ${ringAtLeastMs}, the ringAtLeastMs of rule set ${ruleSet.name}`;
    add('timeoutInMs', message);
  }
  if (abandoned !== undefined && machineDetection === 'disabled') {
    const why = 'because machines would hide among the people who answered';
    add(
      'machineDetection',
      `must not be disabled, as rule set ${ruleSet.name} has abandoned, ${why}`,
    );
  }
  return errors;
}

function consentErrors(
  { consent }: RequestToCheck,
  ruleSet: { readonly name: string; readonly rules: Rules } | undefined,
  now: Date,
): readonly MemberError[] {
  if (consent === undefined) {
    return ruleSet?.rules.consentRequired === true
      ? [{ path: 'consent', message: `is required by rule set ${ruleSet.name}` }]
      : [];
  }
  const errors: MemberError[] = [];
  if (Date.parse(consent.at) > now.getTime() + maxClockSkewMs) {
    errors.push({ path: 'consent.at', message: 'must not be in the future' });
  }
  const voice = ruleSet?.rules.voice ?? 'live';
  if (voice !== 'live' && consent.basis !== 'written') {
    const message = `must be written, as rule set ${ruleSet?.name} has voice ${voice}`;
    errors.push({ path: 'consent.basis', message });
  }
  return errors;
}
