// What a call means for the figures of its campaign, as SQL over the columns of `calls`.

import { type MeterFormula, personOutcomes } from '../../calls/abandonment/abandonment.ts';
import { amdVerdicts } from '../../calls/detection/amd-event.ts';
import { calleeNumber } from '../schema/calls.ts';

const personVerdicts = amdVerdicts.filter((verdict) => verdict !== 'amd_machine_detected');

const quoted = (words: readonly string[]) => words.map((word) => `'${word}'`).join(', ');
/** The outcomes of calls that a person answered, as a list in SQL. */
export const peopleOutcomes = quoted(personOutcomes.filter((outcome) => outcome !== 'none'));

/**
 * Condition for calls that count: they were dialled, and their rule set measures abandoned calls.
 * The check marks the latter as `undecided` (`permits.ts`).
 */
const counts = 'ftc_outcome is not null and rule is null and dialed_at is not null';
export const isDecided = `${counts} and (ftc_outcome <> 'undecided' or ended_at is not null)`;

/**
 * The outcome of a decided call. If a process died before it stored the outcome, a person who had
 * been detected counts as abandoned.
 */
export const outcome = (formula: MeterFormula) =>
  `case when ${formula}_outcome <> 'undecided' then ${formula}_outcome
    when verdict in (${quoted(personVerdicts)}) then 'abandoned' else 'none' end`;
export const ftcOutcome = outcome('ftc');

/** Condition for calls that were abandoned, by whichever formula. */
export const wasAbandoned = `${isDecided} and 'abandoned' in (${outcome('ftc')}, ${outcome('ofcom')})`;

/** How many calls to a number are looked at. Attempts are bounded alike (`lock-calls.ts`). */
const openCalls = 100;

/**
 * When the last of the account's unsettled calls to a number was abandoned. The call is noted in
 * `called_numbers` when it is settled, and settling may wait for NATS, but the person must be left
 * alone from the end of the call on.
 *
 * @param number SQL for the digits of the number
 */
export const openAbandonment = (account: string, number: string) => `
  select max(coalesce(ended_at, clock_timestamp())) from (
    select * from calls where account_id = ${account} and ${calleeNumber.text} = ${number}
      and end_published_at is null
    order by accepted_at desc limit ${openCalls}
  ) as open where ${wasAbandoned}`;

/**
 * The outcome for the record of a call that has ended: what the figures of its campaign count.
 * Null if they don't count the call.
 */
export const recordedOutcome = (formula: MeterFormula) =>
  `case when ${counts} then ${outcome(formula)} end`;
