// How a number without `+` is read. Its digits may be a national number, and with a `+` in front
// they may be the number of another person abroad. A number that is not valid with a `+` is refused,
// unless the request or the app says how to read it.

import { z } from 'zod';
import {
  beginsWithCodeOf,
  impossibilityOf,
  isAssigned,
  isCountry,
  readNational,
} from '../../lib/phone-numbers.ts';
import type { TargetResult } from './dial-target.ts';

const bareNumberReadings = ['international'] as const;
export type BareNumberReading = (typeof bareNumberReadings)[number];

/** A member of a request, of a transfer and of an app. */
export const defaultCountry = z
  .string()
  .refine(isCountry, 'must be a country of ISO 3166-1 in two capital letters, e.g. US')
  .meta({ pattern: '^[A-Z]{2}$' })
  .describe(
    'country (ISO 3166-1 alpha-2, e.g. `US`) whose national numbers may be written without `+`, e.g. `tel:2025550110`',
  );

/** Likewise. */
export const bareNumbers = z
  .enum(bareNumberReadings)
  .describe('`international`: every number without `+` is read as if it had one');

export const numberReadingMembers = {
  defaultCountry: defaultCountry.exactOptional(),
  bareNumbers: bareNumbers.exactOptional(),
};

/** One of the two at most. */
export type NumberReading = {
  /** ISO 3166-1 alpha-2. */
  readonly defaultCountry?: string;
  readonly bareNumbers?: BareNumberReading;
};

/** Whether one of the two members at most is given. Null lifts a setting, and gives none. */
export function hasAtMostOneReading(given: {
  readonly defaultCountry?: string | null | undefined;
  readonly bareNumbers?: string | null | undefined;
}): boolean {
  return typeof given.defaultCountry !== 'string' || typeof given.bareNumbers !== 'string';
}

export const oneReadingOnly =
  'goes without defaultCountry: each says by itself how numbers without + are read';

/** The reading of the request, or else of its app: either setting replaces both of the app. */
export function readingFor(request: NumberReading, app: NumberReading): NumberReading {
  const { defaultCountry: country, bareNumbers: reading } =
    request.defaultCountry === undefined && request.bareNumbers === undefined ? app : request;
  if (reading !== undefined) return { bareNumbers: reading };
  return country === undefined ? {} : { defaultCountry: country };
}

/** @param digits a number that was written without `+` */
export function readBareNumber(digits: string, reading: NumberReading): TargetResult {
  if (reading.bareNumbers === 'international') {
    const problem = impossibilityOf(digits);
    return problem === undefined ? dialled(digits) : refused(problem);
  }
  const { defaultCountry: country } = reading;
  if (country !== undefined) return readInCountry(digits, country);
  if (isAssigned(digits)) return dialled(digits);
  return refused(
    'has no +, and with one it is not a valid number. Write it with + and the country code; or say how such numbers are read, in the request or for the app: defaultCountry, e.g. "US", as national numbers of that country; bareNumbers: "international", as if they had a +',
  );
}

/**
 * The same digits may be valid in several ways. The country's own code in front is hardly there by
 * chance, and comes first. Next comes a national number: for the US, `tel:6562345678` is in Tampa and
 * not in Singapore. Then comes a number that is valid only with a `+`, and at last a fictional one of
 * the country.
 */
function readInCountry(digits: string, country: string): TargetResult {
  const isValidAbroad = isAssigned(digits);
  if (isValidAbroad && beginsWithCodeOf(country, digits)) return dialled(digits);
  const national = readNational(digits, country);
  if (national?.isAssigned === true) return dialled(national.digits);
  if (isValidAbroad) return dialled(digits);
  if (national !== undefined) return dialled(national.digits);
  return refused(
    `is no number of ${country} (defaultCountry); write it with + and the country code`,
  );
}

/** E.164 has at most 15 digits; some plans are looser. */
const mostDigits = 15;

function dialled(digits: string): TargetResult {
  if (digits.length > mostDigits) return refused(`has more than ${mostDigits} digits`);
  return { ok: true, target: { kind: 'tel', number: digits } };
}

function refused(message: string): TargetResult {
  return { ok: false, message };
}
