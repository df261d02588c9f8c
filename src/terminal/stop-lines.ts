// What Ctrl-C answers.

export type Stopping = {
  readonly starting: boolean;
  /** That are up. */
  readonly calls: number;
  /** How long they may go on. */
  readonly drainMs: number;
  /** How long a start may still take. */
  readonly startPatienceMs: number;
};

export function stoppingLine({ starting, calls, drainMs, startPatienceMs }: Stopping): string {
  if (starting) {
    return `Ending when the start is done, in ${inUnits(startPatienceMs)} at the latest; Ctrl-C again ends it at once.`;
  }
  if (calls === 0) return 'Ending: no calls are up.';
  if (drainMs === 0)
    return `Ending: ${calls} ${calls === 1 ? 'call is' : 'calls are'} up, and hung up.`;
  const [are, they] = calls === 1 ? ['call is', 'It has'] : ['calls are', 'They have'];
  return `Ending: ${calls} ${are} up. ${they} ${inUnits(drainMs)} to finish; Ctrl-C again hangs up and ends at once.`;
}

export const forcedLine = 'Ending at once: calls are hung up.';

/** `2 s`, `10 min`, `1 h`: in the unit that people would say it in. */
export function inUnits(ms: number): string {
  const s = Math.max(1, Math.round(ms / 1_000));
  if (s < 120) return `${s} s`;
  return s < 7_200 ? `${Math.round(s / 60)} min` : `${Math.round(s / 3_600)} h`;
}
