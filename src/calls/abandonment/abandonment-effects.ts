// Effects that follow whether a person who answered was connected in time. They watch only calls of
// a campaign under a rule set, because only those have a rule.

import { assertEvent } from 'xstate';
import { announce } from '../announcements/announcement-effects.ts';
import { verdictEventOf } from '../detection/amd-event.ts';
import { nextEvent } from '../life/call-events.ts';
import { type CallMachineContext, callSetup, changing } from '../life/call-setup.ts';
import { evidenceAfter } from '../rules/evidence.ts';
import {
  type AbandonmentRule,
  answererOf,
  connectedAtOf,
  deadlineOf,
  meterFormulas,
  outcomeOf,
  type PersonOutcomes,
  type Reach,
  type ReachEnd,
} from './abandonment.ts';

/**
 * The announcement must have begun when the two seconds are over, so the gateway gives up on
 * everybody else this much earlier.
 */
const announcementLeadMs = 200;

/** Notes who answered, after each event of detection. */
export const noteAnswerer = callSetup.enqueueActions(({ context, enqueue }) => {
  const { reach, progress } = context;
  const { answeredAt, amdEvents } = progress;
  const rule = ruleOf(context);
  const verdict = verdictEventOf(amdEvents);
  if (rule === undefined || answeredAt === undefined || verdict === undefined) return;
  const answerer = answererOf(verdict, answeredAt);
  enqueue.assign({ reach: { ...reach, answerer } });
  if (answerer !== 'machine') {
    const delay = deadlineOf(answerer, rule.formula).getTime() - context.clock.now().getTime();
    if (context.progress.call.request.abandonedSound !== undefined) {
      const inTime = Math.max(0, delay - announcementLeadMs);
      enqueue.raise({ type: 'reach.giveUp' }, { id: 'reach-announcement', delay: inTime });
    }
    // Each clock needs its own timer, since the campaign's figures are kept by both formulas.
    for (const formula of meterFormulas) {
      const delay = deadlineOf(answerer, formula).getTime() - context.clock.now().getTime();
      const id = `reach-${formula}`;
      if (delay > 0) enqueue.raise({ type: 'reach.due' }, { id, delay });
    }
  }
  enqueue(judgeReach);
});

/** Notes an agent who has answered. The call is judged when the answer has been stored. */
export const noteAgentReached = callSetup.assign(({ context, event }) => {
  assertEvent(event, 'transfer.reached');
  const rule = ruleOf(context);
  if (rule === undefined || rule.connected === 'message') return {};
  return { reach: { ...context.reach, agentReachedAt: event.at } };
});

/** Forgets an agent whose answer could not be stored. The gateway has hung up on that agent. */
export const forgetAgent = callSetup.enqueueActions(({ context, enqueue }) => {
  const { agentReachedAt, ...reach } = context.reach;
  if (agentReachedAt === undefined) return;
  enqueue.assign({ reach });
  enqueue(judgeReach);
});

export const noteAgent = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'transfer.answered');
  if (ruleOf(context)?.connected === 'message') return;
  enqueue(connect(event.at));
});

export const noteBot = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'media.botSpoke');
  if (ruleOf(context)?.connected === 'bot-or-agent') enqueue(connect(event.at));
});

export const noteMessage = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'media.playback');
  const { kind, source } = event.report;
  if (kind !== 'started' || source === 'announcement' || source === 'recording') return;
  if (ruleOf(context)?.connected === 'message') enqueue(connect(event.at));
});

function connect(at: Date) {
  return callSetup.enqueueActions(({ context, enqueue }) => {
    const { reach } = context;
    if (ruleOf(context) === undefined || reach.connectedAt !== undefined) return;
    enqueue.assign({ reach: { ...reach, connectedAt: at } });
    enqueue(judgeReach);
  });
}

/** Decides that nobody will come in time, so that the announcement begins in time. */
export const giveUpOnPerson = callSetup.enqueueActions(({ context, enqueue }) => {
  const { reach } = context;
  const rule = ruleOf(context);
  if (rule === undefined || reach.answerer === 'machine') return;
  if (reach.outcomes[rule.formula] !== undefined) return;
  enqueue.assign({ reach: { ...reach, givenUpAt: context.clock.now() } });
  enqueue(judgeReach);
});

/** Stores each outcome as soon as it is decided, and again if a correction changes it. */
export const judgeReach = callSetup.enqueueActions(({ context, enqueue }) => {
  const rule = ruleOf(context);
  if (rule === undefined || context.progress.answeredAt === undefined) return;
  const { reach } = context;
  const outcomes = outcomesOf(context);
  const hasChanged = meterFormulas.some((formula) => outcomes[formula] !== reach.outcomes[formula]);
  if (!hasChanged) return;
  const isStated = reach.isStated || outcomes[rule.formula] === 'abandoned';
  enqueue.assign({ reach: { ...reach, outcomes, isStated } });
  const step = { events: [], person: outcomes };
  if (!isStated || reach.isStated) return enqueue({ type: 'append', params: step });
  const at = context.end?.at ?? context.clock.now();
  const { event, ...sequences } = nextEvent(context.progress, 'abandoned', at, {
    ...{ formula: rule.formula, missing: rule.connected },
    ...greetingEndOf(reach),
  });
  const evidence = evidenceAfter(context.progress.evidence, event);
  enqueue.assign(changing('progress', { ...sequences, evidence }));
  enqueue({ type: 'append', params: { ...step, events: [event] } });
  // If detection decides late, somebody may have come too late, but before the decision.
  const isAlone = connectedAtOf(reach) === undefined;
  if (isAlone && context.progress.call.request.abandonedSound !== undefined) {
    enqueue(announce('abandonedSound'));
  }
});

function outcomesOf(context: CallMachineContext): PersonOutcomes {
  const { reach, clock } = context;
  const end = endOf(context);
  const entries = meterFormulas.flatMap((formula) => {
    const outcome = outcomeOf(reach, formula, clock.now(), end);
    return outcome === undefined ? [] : [[formula, outcome] as const];
  });
  return Object.fromEntries(entries);
}

/** Whoever opts out by a key leaves the call with it, although a sound may follow. */
function endOf({ end, progress }: CallMachineContext): ReachEnd | undefined {
  const { optedOut } = progress.evidence;
  if (optedOut?.by === 'key') return { at: new Date(optedOut.at), isByPerson: true };
  if (end === undefined) return undefined;
  return { at: end.at, isByPerson: end.reasonCode === 'Caller-disconnected' };
}

function greetingEndOf({ answerer }: Reach): { readonly greetingEndedMs?: number } {
  if (answerer === undefined || answerer === 'machine') return {};
  const { greetingEndedMs } = answerer;
  return greetingEndedMs === undefined ? {} : { greetingEndedMs };
}

function ruleOf({ progress }: CallMachineContext): AbandonmentRule | undefined {
  return progress.call.ruling?.abandonment;
}
