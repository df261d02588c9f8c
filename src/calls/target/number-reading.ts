// Reads numbers without `+`. The digits may be a national number, and with a `+` in front they
// could reach a different person abroad. So unless the request or the app says how to read them, we
// only accept digits that are valid with a `+`.

import { z } from 'zod';
import {
  hasCountryCode,
  isAssigned,
  isCountry,
  readNational,
  whyImpossible,
} from '../../lib/phone-numbers.ts';
import type { TargetResult } from './dial-target.ts';

const bareNumberReadings = ['international'] as const;
export type BareNumberReading = (typeof bareNumberReadings)[number];

/** The `defaultCountry` field of a request, a transfer or an app. */
export const defaultCountry = z
  .string()
  .refine(isCountry, 'must be an ISO 3166-1 country code in two capital letters, e.g. US')
  .meta({ pattern: '^[A-Z]{2}$' })
  .describe(
    'country (ISO 3166-1 alpha-2, e.g. `US`) whose national numbers may be written without `+`, e.g. `tel:2025550110`',
  );

/** The `bareNumbers` field of a request, a transfer or an app. */
export const bareNumbers = z
  .enum(bareNumberReadings)
  .describe('`international`: every number without `+` is read as if it had one');

export const numberReadingMembers = {
  defaultCountry: defaultCountry.exactOptional(),
  bareNumbers: bareNumbers.exactOptional(),
};

/** How to read numbers without `+`. At most one of the two settings is present. */
export type NumberReading = {
  /** ISO 3166-1 alpha-2 country code. */
  readonly defaultCountry?: string;
  readonly bareNumbers?: BareNumberReading;
};

/**
 * Checks that at most one of the two settings is present. A null removes the setting, so it doesn't
 * count.
 */
export function hasAtMostOneReading(settings: {
  readonly defaultCountry?: string | null | undefined;
  readonly bareNumbers?: string | null | undefined;
}): boolean {
  return typeof settings.defaultCountry !== 'string' || typeof settings.bareNumbers !== 'string';
}

export const oneReadingOnly =
  'cannot be combined with defaultCountry: each of them alone defines how numbers without + are read';

/**
 * Returns the request's settings, or the app's if the request has neither. The two are never mixed.
 */
export function readingFor(request: NumberReading, app: NumberReading): NumberReading {
  const { defaultCountry: country, bareNumbers: reading } =
    request.defaultCountry === undefined && request.bareNumbers === undefined ? app : request;
  if (reading !== undefined) return { bareNumbers: reading };
  return country === undefined ? {} : { defaultCountry: country };
}

/** Reads a number that was written without `+`. */
export function readBareNumber(digits: string, reading: NumberReading): TargetResult {
  if (reading.bareNumbers === 'international') {
    const problem = whyImpossible(digits);
    return problem === undefined ? accept(digits) : reject(problem);
  }
  const { defaultCountry: country } = reading;
  if (country !== undefined) return readInCountry(digits, country);
  if (isAssigned(digits)) return accept(digits);
  return reject(
    'has no +, and is not a valid number with one. Write it with + and the country code, or set in the request or for the app how such numbers are read: defaultCountry, e.g. "US", reads them as national numbers of that country; bareNumbers: "international" reads them as if they had a +',
  );
}

/**
 * Reads a number for a default country. Because the same digits may be valid in several ways, we
 * try these readings in order: a number that starts with the country's own code, which is unlikely
 * to be chance; a national number (for the US, `tel:6562345678` is in Tampa, not in Singapore); a
 * number that is only valid with a `+`; and finally one of the country's fictional numbers.
 */
function readInCountry(digits: string, country: string): TargetResult {
  const isValidAbroad = isAssigned(digits);
  if (isValidAbroad && hasCountryCode(country, digits)) return accept(digits);
  const national = readNational(digits, country);
  if (national?.isAssigned === true) return accept(national.digits);
  if (isValidAbroad) return accept(digits);
  if (national !== undefined) return accept(national.digits);
  return reject(
    `is not a number in ${country} (defaultCountry); write it with + and the country code`,
  );
}

/** E.164 allows at most 15 digits, but the metadata for some numbering plans allows more. */
const maxDigits = 15;

function accept(digits: string): TargetResult {
  if (digits.length > maxDigits) return reject(`has more than ${maxDigits} digits`);
  return { ok: true, target: { kind: 'tel', number: digits } };
}

function reject(message: string): TargetResult {
  return { ok: false, message };
}
