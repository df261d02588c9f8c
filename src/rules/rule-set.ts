// A rule set's document: its schema, and the checks that need the calendar. The document is stored
// as the account wrote it; `compile-rules.ts` turns it into what decisions are made with.

import { z } from 'zod';
import { meterFormulas } from '../calls/abandonment/abandonment.ts';
import { maxRingTimeoutMs } from '../calls/dialout-limits.ts';
import { parseDurationS } from '../lib/durations.ts';
import { isTimeZone } from '../lib/local-days.ts';

/** Applies to every call whose request names no other rule set. */
export const defaultRuleSet = 'default';

export const ruleSetName = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, "_" or "-"');

export const weekdays = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const;
export type Weekday = (typeof weekdays)[number];

/** Ranges run through the week from Monday, as people write them. */
const weekFromMonday: readonly Weekday[] = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];
const namesFromMonday: readonly string[] = weekFromMonday;

/**
 * Reads `mon-fri`, `mon,wed` or `mon-wed,sat`.
 *
 * @returns undefined for any other text
 */
export function readDays(text: string): ReadonlySet<Weekday> | undefined {
  const days = new Set<Weekday>();
  for (const part of text.split(',')) {
    const [from = '', until = from, ...more] = part.split('-');
    const first = namesFromMonday.indexOf(from);
    const last = namesFromMonday.indexOf(until);
    if (more.length > 0 || first < 0 || last < first) return undefined;
    for (const day of weekFromMonday.slice(first, last + 1)) days.add(day);
  }
  return days;
}

/** Reads `08:30` as minutes since midnight. */
export function readMinutes(time: string): number {
  const [hours, minutes] = time.split(':');
  return Number(hours) * 60 + Number(minutes);
}

const maxDurationS = 366 * 86_400;

/** A length of time such as `90m`, `24h` or `30d`. */
const duration = z
  .string()
  .regex(/^\d{1,6}[mhd]$/, 'must be a number with m, h or d, e.g. 90m, 24h or 30d')
  .refine((text) => {
    const seconds = parseDurationS(text);
    // What is no duration has its message already.
    return seconds === undefined || (seconds > 0 && seconds <= maxDurationS);
  }, 'must be from 1m to 366d')
  .meta({ examples: ['24h'] });

/** What to do with a call that a rule doesn't permit yet. */
export type Otherwise = z.output<typeof otherwiseChoice>;
const otherwiseChoice = z.enum(['wait', 'fail']);

const otherwise = otherwiseChoice
  .exactOptional()
  .describe(
    'what to do with a call that comes too early: `wait` lets it wait, for up to its `queueTimeoutMs`; `fail` ends it at once with `notBefore`. Default: `fail`',
  );

const window = z
  .strictObject({
    days: z
      .string()
      .max(64)
      .refine(
        (text) => readDays(text) !== undefined,
        'must be days such as mon-fri or mon,wed, in which a range runs forward from mon to sun',
      )
      .describe('`mon` to `sun`, ranges and lists: `mon-fri`, `mon,wed`'),
    from: z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, {
      error: 'must be a time from 00:00 to 23:59',
      abort: true,
    }),
    until: z
      .string()
      .regex(/^(([01]\d|2[0-3]):[0-5]\d|24:00)$/, {
        error: 'must be a time from 00:01 to 24:00',
        abort: true,
      })
      .describe('the first minute after the window; `24:00` is the end of the day'),
  })
  .refine(({ from, until }) => from < until, {
    path: ['until'],
    message: 'must be later than from: a window does not cross midnight, so use two windows',
  });

/** One window for each day and a few exceptions fit several times. */
const maxWindows = 50;
/** A year of closed days. */
const maxClosedDays = 366;

const hours = z
  .strictObject({
    zones: z
      .string()
      .max(64)
      .refine(
        (text) => text === 'callee' || isTimeZone(text),
        'must be callee or an IANA time zone, e.g. Europe/London',
      )
      .exactOptional()
      .describe(
        'where the person is: `callee` takes the time zones of the number’s prefix, and all of them must allow the call; an IANA name is used for every number. The request’s `timeZone` takes precedence. Default: `callee`',
      ),
    windows: z
      .array(window)
      .min(1, 'must have a window, because without one no call is ever permitted')
      .max(maxWindows)
      .describe('when calls are permitted, in the person’s local time'),
    closed: z
      .array(z.iso.date('must be a date such as 2026-12-25'))
      .max(maxClosedDays)
      .exactOptional()
      .describe('dates, in the person’s local time, on which no call is permitted'),
    otherwise,
  })
  .describe('the person’s local time at which calls are permitted');

/** A number's attempts are kept up to this many (`src/store/schema/rules.ts`). */
const maxMost = 100;
const maxAttemptRules = 10;

const attempts = z
  .array(
    z.strictObject({
      most: z.number().int().min(1).max(maxMost),
      within: duration,
      otherwise,
    }),
  )
  .min(1)
  .max(maxAttemptRules)
  .describe(
    'how often a number may be called, by all of the account’s apps together, whatever the outcome',
  );

const rest = z
  .strictObject({
    afterAbandoned: duration.exactOptional(),
    afterAnswered: duration.exactOptional(),
    otherwise,
  })
  .refine(
    ({ afterAbandoned, afterAnswered }) => (afterAbandoned ?? afterAnswered) !== undefined,
    'needs afterAbandoned or afterAnswered',
  )
  .describe('how long a number is left alone after a call to it was answered, or abandoned');

const falseMachineRate = z
  .strictObject({
    rate: z
      .number()
      .min(0)
      .max(0.5)
      .describe('share of people that detection takes for machines, e.g. 0.02 for 2 %'),
    source: z
      .string()
      .min(1)
      .max(256)
      .describe('where the rate comes from, e.g. a labelled sample of the account’s recordings'),
  })
  .describe('the basis of the estimate of Ofcom’s formula');

const abandoned = z
  .strictObject({
    formula: z
      .enum(meterFormulas)
      .describe('the formula that `most` and `hold` use. Campaigns show both'),
    most: z
      .number()
      .positive()
      .max(100)
      .exactOptional()
      .describe('highest share of abandoned calls, in percent. Only with `formula: ftc`'),
    allow: z
      .number()
      .int()
      .min(0)
      .max(1_000_000)
      .exactOptional()
      .describe('so many abandoned calls never hold a campaign. Needs `most`. Default: 5'),
    hold: z
      .boolean()
      .exactOptional()
      .describe('whether calls wait while `most` would be exceeded. Needs `most`. Default: false'),
    falseMachineRate: falseMachineRate.exactOptional(),
  })
  // Ofcom withdrew its 3 % in 2017, so a limit by its formula would imply a rule that nobody made.
  .refine(({ formula, most }) => formula === 'ftc' || most === undefined, {
    path: ['most'],
    message: 'cannot be combined with formula ofcom, which has no limit and only measures',
  })
  .refine(({ most, hold }) => most !== undefined || hold !== true, {
    path: ['hold'],
    message: 'needs most, the share above which calls wait',
  })
  .refine(({ most, allow }) => most !== undefined || allow === undefined, {
    path: ['allow'],
    message: 'needs most, the share that applies above it',
  })
  .describe('the share of abandoned calls of each campaign');

export const ruleSetSchema = z
  .strictObject({
    hours: hours.exactOptional(),
    attempts: attempts.exactOptional(),
    rest: rest.exactOptional(),
    consent: z
      .literal('required')
      .exactOptional()
      .describe('requests need `consent`, or get a 400 that names it'),
    ringAtLeastMs: z
      .number()
      .int()
      .min(1_000)
      .max(maxRingTimeoutMs)
      .exactOptional()
      .describe('a request with a shorter `timeoutInMs` gets a 400'),
    voice: z
      .enum(['live', 'artificial', 'recorded'])
      .exactOptional()
      .describe(
        'who speaks: a person (`live`), a bot or a synthetic voice (`artificial`), or a message that is the purpose of the call (`recorded`). With the latter two, `basis` in a request’s `consent` must be `written`. Default: `live`',
      ),
    connected: z
      .enum(['agent', 'bot-or-agent'])
      .exactOptional()
      .describe(
        'who must be there in time for a call not to count as abandoned: an agent, or else also a bot whose stream has sent sound. Default: `agent`',
      ),
    abandoned: abandoned.exactOptional(),
  })
  .meta({
    id: 'RuleSetDocument',
    description: 'The rules of a rule set. A rule that it leaves out does not apply.',
    examples: [
      {
        hours: {
          zones: 'callee',
          windows: [
            { days: 'mon-fri', from: '08:00', until: '21:00' },
            { days: 'sat', from: '09:00', until: '17:00' },
          ],
          closed: ['2026-12-25'],
          otherwise: 'wait',
        },
        attempts: [{ most: 3, within: '24h' }],
        rest: { afterAbandoned: '72h', afterAnswered: '7d' },
        consent: 'required',
        ringAtLeastMs: 15_000,
      },
    ],
  });

/** A rule set's document, as the account wrote it. */
export type RuleSetDocument = z.output<typeof ruleSetSchema>;
