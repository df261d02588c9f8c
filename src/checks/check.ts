// A check tests a single thing that a gateway needs, and gives advice if that thing is missing. The
// gateway runs the checks when it starts, before it opens anything. `offhook doctor` runs them on
// demand.

import { within } from '../lib/within.ts';

export type Finding = {
  /** `skipped` means that there is nothing to check. */
  readonly state: 'ok' | 'warning' | 'failed' | 'skipped';
  /** A human-readable message. For a failure, it names the variable and the reason. */
  readonly detail: string;
};

export type Check = {
  readonly name: string;
  /**
   * True if the check is for a server that may still be starting. If this check fails, the gateway
   * starts anyway and waits for the server.
   */
  readonly isAwaited?: boolean;
  run(): Promise<Finding>;
};

export type CheckResult = Finding & { readonly name: string; readonly isAwaited: boolean };

/**
 * Time-out for a check in `offhook doctor`. Users expect results within three seconds, whereas a
 * healthy server responds within milliseconds.
 */
const doctorTimeoutMs = 2_500;
/**
 * Time-out for a check while the gateway is starting. A check that times out counts as failed, so
 * we allow plenty of time. The gateway must be able to start even on a busy machine, e.g. while
 * many programs are starting.
 */
export const startTimeoutMs = 15_000;
/**
 * Time-out for a connection, which is shorter than a check's time-out so that the check can still
 * report the reason.
 */
export const connectTimeoutMs = 2_000;

/** Runs all checks concurrently. */
export async function runChecks(
  checks: readonly Check[],
  timeoutMs = doctorTimeoutMs,
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
  const late = `the ${check.name} check did not finish within ${timeoutMs / 1_000} s`;
  try {
    return (await within(check.run(), timeoutMs)) ?? failed(late);
  } catch (error) {
    return failed(error instanceof Error ? error.message : String(error));
  }
}
