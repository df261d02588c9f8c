// What Ctrl-C answers.

import { inUnits } from './durations.ts';

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
