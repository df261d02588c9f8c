// A check tests one thing that a gateway needs, and advises what to do if it is missing. A starting
// gateway runs the checks before it opens anything. `offhook doctor` runs them on demand.

import { within } from '../lib/within.ts';

export type Finding = {
  /** `skipped` if there is nothing to check. */
  readonly state: 'ok' | 'warning' | 'failed' | 'skipped';
  /** A message for people. The message of a failure names the variable and the reason. */
  readonly detail: string;
};

export type Check = {
  readonly name: string;
  /**
   * True for a server that may still be starting. If this check fails, the gateway starts anyway
   * and waits for the server.
   */
  readonly isAwaited?: boolean;
  run(): Promise<Finding>;
};

export type CheckResult = Finding & { readonly name: string; readonly isAwaited: boolean };

/**
 * Time-out of a check in `offhook doctor`, whose user expects results within three seconds. A
 * healthy server answers within milliseconds.
 */
const doctorTimeoutMs = 2_500;
/**
 * Time-out of a check while the gateway starts. A time-out counts as a failure, so it is long: the
 * start must succeed on a busy machine, for example while many programs start together.
 */
export const startTimeoutMs = 15_000;
/** Time-out of a connection. Shorter than a check, so that the check can report the reason. */
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
