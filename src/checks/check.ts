// A check asks whether something holds that a gateway needs, and if not, says what to do about it. The start makes them before
// it opens anything, `offhook doctor` when asked.

import { within } from '../lib/within.ts';

export type Finding = {
  /** `skipped`: there is nothing to check here. */
  readonly state: 'ok' | 'warning' | 'failed' | 'skipped';
  /** For people. Of a failure: the variable to look at, and the reason. */
  readonly detail: string;
};

export type Check = {
  readonly name: string;
  /** A start goes on where it fails, and waits for it: it may be starting as well. */
  readonly isAwaited?: boolean;
  run(): Promise<Finding>;
};

export type CheckResult = Finding & { readonly name: string; readonly isAwaited: boolean };

/** Who asks wants to know within three seconds: what is asked answers in milliseconds or is not well. */
const askedTimeoutMs = 2_500;
/** A start gives up over it: a machine that is busy, e.g. because it starts many programs at once, is no reason. */
export const startTimeoutMs = 15_000;
/** For connections, which say more when they fail than that it took long. */
export const connectTimeoutMs = 2_000;

/** All at once. */
export async function runChecks(
  checks: readonly Check[],
  timeoutMs = askedTimeoutMs,
): Promise<readonly CheckResult[]> {
  return await Promise.all(
    checks.map(async (check) => {
      const { name, isAwaited = false } = check;
      return { name, isAwaited, ...(await runOne(check, timeoutMs)) };
    }),
  );
}

export function ok(detail: string): Finding {
  return { state: 'ok', detail };
}

export function failed(detail: string): Finding {
  return { state: 'failed', detail };
}

export function skipped(detail: string): Finding {
  return { state: 'skipped', detail };
}

export function warning(detail: string): Finding {
  return { state: 'warning', detail };
}

async function runOne(check: Check, timeoutMs: number): Promise<Finding> {
  const late = `the check of ${check.name} was not done within ${timeoutMs / 1_000} s`;
  try {
    return (await within(check.run(), timeoutMs)) ?? failed(late);
  } catch (error) {
    return failed(error instanceof Error ? error.message : String(error));
  }
}
