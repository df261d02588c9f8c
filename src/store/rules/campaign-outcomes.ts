// What a call means for the figures of its campaign, as SQL over the columns of `calls`.

import { type MeterFormula, personOutcomes } from '../../calls/abandonment/abandonment.ts';
import { amdVerdicts } from '../../calls/detection/amd-event.ts';

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

/**
 * The outcome for the record of a call that has ended: what the figures of its campaign count.
 * Null if they don't count the call.
 */
export const recordedOutcome = (formula: MeterFormula) =>
  `case when ${counts} then ${outcome(formula)} end`;
