// The second count: decides what became of a call from what the person's phone, the bot and the
// agent's phone logged by their own clocks. It shares no code with the gateway. Only three facts
// come from the gateway: the final verdict of detection, how much of the call it did not hear, and
// which calls lost their process.

import { announcementLeadMs, type CampaignName, campaigns, withinMs } from './meter-script.ts';

export const formulas = ['ftc', 'ofcom'] as const;
export type Formula = (typeof formulas)[number];
export type Outcome = 'connected' | 'abandoned' | 'left' | 'none';

/** All instants are from `Date.now()`. */
export type CallLogs = {
  readonly campaign: CampaignName;
  readonly announces: boolean;
  /** The final verdict, from the call's last event. */
  readonly verdict?: string;
  /** When the gateway stated it. */
  readonly verdictAt?: number;
  /** How much of the call a busy gateway did not hear before the verdict. */
  readonly unheardMs?: number;
  readonly person: {
    readonly answeredAt?: number;
    readonly greetingBeganAt?: number;
    readonly greetingEndedAt?: number;
    /** When the phone sent or got BYE. */
    readonly endedAt?: number;
    readonly hungUpItself: boolean;
    /** How long after its own BYE the phone got that of the gateway, if the two crossed. */
    readonly crossedAfterMs?: number;
    /** When the phone got the first sound. */
    readonly heardAt?: number;
  };
  /** When the bot sent its first sound. */
  readonly botSpokeAt?: number;
  /** When the agent's phone sent its 200. */
  readonly agentAnsweredAt?: number;
};

export type Recounted = {
  readonly outcome: Outcome;
  /** How close the deciding instant was to one that would have changed the outcome. */
  readonly marginMs: number;
  /** When the outcome was known: not before the verdict. */
  readonly decidedAt: number;
};

const personVerdicts = new Set([
  ...['amd_human_detected', 'amd_no_speech_detected', 'amd_decision_timeout', 'amd_error'],
]);

const far = Number.POSITIVE_INFINITY;
const nobody: Recounted = { outcome: 'none', marginMs: far, decidedAt: 0 };

export function recount(logs: CallLogs, formula: Formula): Recounted {
  const { verdict, person } = logs;
  const clock = clockOf(logs, formula);
  if (verdict === undefined || !personVerdicts.has(verdict) || clock === undefined) return nobody;
  const deadline = clock + withinMs;
  const known = (at: number): number => Math.max(at, logs.verdictAt ?? 0);
  const { endedAt = far, hungUpItself } = person;
  const comesAt = connectedAt(logs);
  const lastChance = Math.min(deadline, announcementAt(logs), endedAt);
  if (comesAt <= lastChance) {
    return { outcome: 'connected', marginMs: lastChance - comesAt, decidedAt: known(comesAt) };
  }
  const lateBy = comesAt - lastChance;
  if (hungUpItself && endedAt <= deadline) {
    // If both hang up at the same time, each of them has left first by its own clock.
    const { crossedAfterMs = far } = person;
    const marginMs = Math.min(lateBy, deadline - endedAt, crossedAfterMs);
    return { outcome: 'left', marginMs, decidedAt: known(endedAt) };
  }
  const leftLateBy = hungUpItself ? endedAt - deadline : far;
  const decidedAt = known(Math.min(deadline, announcementAt(logs), endedAt));
  return { outcome: 'abandoned', marginMs: Math.min(lateBy, leftLateBy), decidedAt };
}

/** Without a greeting, both clocks begin at the answer. */
function clockOf({ verdict, person }: CallLogs, formula: Formula): number | undefined {
  if (verdict !== 'amd_human_detected') return person.answeredAt;
  return formula === 'ftc' ? person.greetingEndedAt : person.greetingBeganAt;
}

function connectedAt({ campaign, person, botSpokeAt = far, ...logs }: CallLogs): number {
  const { agentAnsweredAt = far } = logs;
  switch (campaign) {
    case 'agents':
      return agentAnsweredAt;
    case 'bots':
      return Math.min(botSpokeAt, agentAnsweredAt);
    case 'messages':
      return person.heardAt ?? far;
  }
}

/**
 * When the announcement replaces everybody else, by the clock of the rule set. Before the verdict,
 * the gateway doesn't know whom it would announce it to.
 */
function announcementAt(logs: CallLogs): number {
  if (!logs.announces) return far;
  const clock = clockOf(logs, campaigns[logs.campaign].abandoned.formula) ?? far;
  return Math.max(clock + withinMs - announcementLeadMs, logs.verdictAt ?? 0);
}

/**
 * Returns the outcomes that a call may have whose process died at `diedAt`. What was decided long
 * before is stored. A person who had been detected counts as abandoned if nothing had been stored.
 *
 * @param storedWithinMs what was decided this shortly before may or may not have been stored
 */
export function outcomesAfterDeath(
  { outcome, decidedAt }: Recounted,
  diedAt: number,
  storedWithinMs: number,
): ReadonlySet<Outcome> {
  if (outcome === 'none') return new Set(['none']);
  if (decidedAt > diedAt) return new Set(['abandoned']);
  return new Set(decidedAt > diedAt - storedWithinMs ? [outcome, 'abandoned'] : [outcome]);
}
