// A gateway that stood still in the middle of a call did not hear what was said: of what comes of it nothing is to be learnt, and
// the call is placed again.

import type { RuntimeFile } from './gateway-process.ts';

/** Pauses that are shorter are those of speech. */
const standstillMs = 400;
const maxTries = 4;
const tickMs = 20;

/** `attempt` fails with what is wrong. Only where the clock of the gateway's media was late meanwhile is it made again. */
export async function undisturbed<Value>(
  ticksLate: () => Promise<number>,
  attempt: () => Promise<Value>,
): Promise<Value> {
  for (let tries = 1; ; tries += 1) {
    const before = await ticksLate();
    try {
      return await attempt();
    } catch (error) {
      const lateMs = ((await ticksLate()) - before) * tickMs;
      if (lateMs < standstillMs || tries === maxTries) throw error;
    }
  }
}

/** Of all its calls, as its metrics have it. */
export async function ticksLateOf({ httpUrl }: Pick<RuntimeFile, 'httpUrl'>): Promise<number> {
  const metrics = await (await fetch(`${httpUrl}/metrics`)).text();
  const [, count] = /^offhook_media_ticks_late_total (\d+)$/m.exec(metrics) ?? [];
  if (count === undefined) throw new Error('no metric of late ticks');
  return Number(count);
}
