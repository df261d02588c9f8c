// The lines that the gateway prints after Ctrl-C.

export type Stopping = {
  readonly starting: boolean;
  /** The number of calls that are up. */
  readonly calls: number;
  /** The calls may continue for this long. */
  readonly drainMs: number;
  /** Maximum time that the gateway's start may still need. */
  readonly startPatienceMs: number;
};

export function stoppingLine({ starting, calls, drainMs, startPatienceMs }: Stopping): string {
  if (starting) {
    return `Ending after the start, within ${inUnits(startPatienceMs)}; press Ctrl-C again to end at once.`;
  }
  if (calls === 0) return 'Ending: no calls are up.';
  if (drainMs === 0) return `Ending: hanging up ${calls} ${calls === 1 ? 'call' : 'calls'}.`;
  const [are, they] = calls === 1 ? ['call is', 'It has'] : ['calls are', 'They have'];
  return `Ending: ${calls} ${are} up. ${they} ${inUnits(drainMs)} to finish; press Ctrl-C again to hang up and end at once.`;
}

export const forcedLine = 'Ending at once: hanging up all calls.';

/** Formats a duration in the unit that people would use, e.g. `2 s`, `10 min` or `1 h`. */
export function inUnits(ms: number): string {
  const s = Math.max(1, Math.round(ms / 1_000));
  if (s < 120) return `${s} s`;
  return s < 7_200 ? `${Math.round(s / 60)} min` : `${Math.round(s / 3_600)} h`;
}
