// What the world's numbering plans say about a number. The plans come from Google's libphonenumber,
// which only this file imports. `/max` is its complete metadata. With less, the library can only
// guess validity from the length.

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
 * Says why no phone can have this number. Only the country code and the length count. A fictional
 * number therefore passes, and so does a number in a range that is newer than the library.
 *
 * @param digits E.164, without the `+`
 * @returns undefined if a phone can have the number
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

/**
 * Returns true if the digits are a complete E.164 number, without the `+`, in an assigned range.
 */
export function isAssigned(digits: string): boolean {
  const number = parsePhoneNumberFromString(`+${digits}`);
  // The library drops a national prefix after the country code, as in +44 (0)20….
  return number?.number === `+${digits}` && number.isValid();
}

/** Returns true if the digits begin with the code of this country, e.g. `49` for `DE`. */
export function beginsWithCodeOf(country: string, digits: string): boolean {
  return isCountry(country) && digits.startsWith(getCountryCallingCode(country));
}

/** A national number, read as people in its country dial it. */
export type NationalReading = {
  /** E.164, without the `+`. */
  readonly digits: string;
  /** Whether the numbering plan has assigned the number's range. */
  readonly isAssigned: boolean;
};

/**
 * Reads digits as people dial them in `country`: with or without the national prefix, or after the
 * prefix of international calls.
 *
 * @returns undefined if the digits cannot be a number
 */
export function readNational(digits: string, country: string): NationalReading | undefined {
  if (!isCountry(country)) return undefined;
  const number = parsePhoneNumberFromString(digits, country);
  if (number?.isPossible() !== true) return undefined;
  return { digits: number.number.slice(1), isAssigned: number.isValid() };
}
