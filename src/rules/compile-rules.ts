// Turns a rule set's document into what decisions are made with: durations in milliseconds, hours
// with their calendar, and every default filled in.

import type { MeterFormula } from '../calls/abandonment/abandonment.ts';
import type { MemberError } from '../calls/contract/schema.ts';
import { parseDurationS } from '../lib/durations.ts';
import type { AttemptRule } from './attempts.ts';
import { type CallingHours, createCallingHours, type DailyWindow } from './hours/calling-hours.ts';
import type { RestRule } from './rest.ts';
import {
  type Otherwise,
  type RuleSetDocument,
  readDays,
  readMinutes,
  weekdays,
} from './rule-set.ts';

export type HoursRule = {
  /** `callee`: the zones of the number's prefix. Otherwise an IANA name for all numbers. */
  readonly zones: string;
  readonly calendar: CallingHours;
  readonly otherwise: Otherwise;
};

export type AbandonedRule = {
  readonly formula: MeterFormula;
  /** In percent. Undefined if the share is only measured. */
  readonly most?: number;
  readonly allow: number;
  readonly hold: boolean;
  readonly falseMachineRate?: { readonly rate: number; readonly source: string };
};

/** A rule set in force. */
export type Rules = {
  readonly hours?: HoursRule;
  readonly attempts: readonly AttemptRule[];
  readonly rest?: RestRule;
  readonly consentRequired: boolean;
  readonly ringAtLeastMs?: number;
  readonly voice: 'live' | 'artificial' | 'recorded';
  readonly connected: 'agent' | 'bot-or-agent';
  readonly abandoned?: AbandonedRule;
};

const defaultAllow = 5;

export function compileRules(document: RuleSetDocument): Rules {
  const { hours, attempts = [], rest, ringAtLeastMs, abandoned } = document;
  return {
    ...(hours === undefined ? {} : { hours: hoursRule(hours) }),
    attempts: attempts.map(({ most, within, otherwise = 'fail' }) => ({
      most,
      withinMs: durationMs(within),
      otherwise,
    })),
    ...(rest === undefined ? {} : { rest: restRule(rest) }),
    consentRequired: document.consent === 'required',
    ...(ringAtLeastMs === undefined ? {} : { ringAtLeastMs }),
    voice: document.voice ?? 'live',
    connected: document.connected ?? 'agent',
    ...(abandoned === undefined
      ? {}
      : { abandoned: { allow: defaultAllow, hold: false, ...abandoned } }),
  };
}

function hoursRule({
  zones = 'callee',
  windows,
  closed = [],
  otherwise = 'fail',
}: NonNullable<RuleSetDocument['hours']>): HoursRule {
  const daily = weekdays.map((day) =>
    windows
      .filter(({ days }) => readDays(days)?.has(day) === true)
      .map(
        ({ from, until }): DailyWindow => ({
          fromMinute: readMinutes(from),
          untilMinute: readMinutes(until),
        }),
      ),
  );
  return { zones, calendar: createCallingHours({ windows: daily, closed }), otherwise };
}

function restRule({
  afterAbandoned,
  afterAnswered,
  otherwise = 'fail',
}: NonNullable<RuleSetDocument['rest']>): RestRule {
  return {
    afterAbandonedMs: afterAbandoned === undefined ? 0 : durationMs(afterAbandoned),
    afterAnsweredMs: afterAnswered === undefined ? 0 : durationMs(afterAnswered),
    otherwise,
  };
}

function durationMs(text: string): number {
  const seconds = parseDurationS(text);
  if (seconds === undefined) throw new Error('a stored rule set has an unreadable duration');
  return seconds * 1_000;
}

/** @returns undefined if the rules permit a call at some time, to a number that was never called */
export function whyNeverPermitted({ hours }: Rules, now: Date): MemberError | undefined {
  // Any zone will do, because every zone has every date of the next year.
  if (hours === undefined || hours.calendar.opening(['UTC'], now.getTime()) !== undefined) {
    return undefined;
  }
  return {
    path: 'hours.closed',
    message: 'leaves no day within a year on which calls are permitted',
  };
}
