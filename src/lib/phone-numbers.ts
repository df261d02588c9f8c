// What the numbering plans of the world say of a number. The only file that imports the library of them: Google's
// libphonenumber, with its metadata for every kind of number (`/max`), without which validity is a guess from the length.

import {
  type CountryCode,
  getCountryCallingCode,
  isSupportedCountry,
  parsePhoneNumberFromString,
  validatePhoneNumberLength,
} from 'libphonenumber-js/max';

/** ISO 3166-1 alpha-2, in capital letters, e.g. `DE`. */
export function isCountry(text: string): text is CountryCode {
  return isSupportedCountry(text);
}

/**
 * Says why no phone can have this number, or returns undefined. Only the country code and the length count, so that a fictional
 * number passes: plans gain ranges that a library does not know yet.
 *
 * @param digits E.164, without the `+`
 */
export function impossibilityOf(digits: string): string | undefined {
  switch (validatePhoneNumberLength(`+${digits}`)) {
    case undefined:
      return undefined;
    case 'INVALID_COUNTRY':
      return 'begins with no country code that exists';
    case 'TOO_SHORT':
    case 'NOT_A_NUMBER':
      return 'is too short for a number of its country code';
    case 'TOO_LONG':
      return 'is too long for a number of its country code';
    case 'INVALID_LENGTH':
      return 'has a length that no number of its country code has';
  }
}

/** Whether a plan has assigned the range of this number, which is written exactly as E.164 writes it, without the `+`. */
export function isAssigned(digits: string): boolean {
  const number = parsePhoneNumberFromString(`+${digits}`);
  // The library drops a national prefix behind the country code, as in +44 (0)20…; those digits are not that number.
  return number?.number === `+${digits}` && number.isValid();
}

/** Whether the digits begin with the code of this country, e.g. `49` for `DE`. */
export function beginsWithCodeOf(country: string, digits: string): boolean {
  return isCountry(country) && digits.startsWith(getCountryCallingCode(country));
}

/** A number as people in one country dial it. */
export type NationalReading = {
  /** E.164, without the `+`. */
  readonly digits: string;
  /** The plan has assigned its range. */
  readonly isAssigned: boolean;
};

/**
 * Reads digits as they are dialled in `country`: with or without the national prefix, behind the prefix of international calls,
 * or behind the country's own code. Returns undefined if they are no possible number there.
 */
export function readNational(digits: string, country: string): NationalReading | undefined {
  if (!isCountry(country)) return undefined;
  const number = parsePhoneNumberFromString(digits, country);
  if (number?.isPossible() !== true) return undefined;
  return { digits: number.number.slice(1), isAssigned: number.isValid() };
}
