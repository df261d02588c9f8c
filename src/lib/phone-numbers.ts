// Checks numbers against the world's numbering plans. This is the only file that imports Google's
// libphonenumber. We need the complete metadata in `/max`, because with less metadata the library
// would only check a number's length.

import {
  type CountryCode,
  getCountryCallingCode,
  isSupportedCountry,
  parsePhoneNumberFromString,
  validatePhoneNumberLength,
} from 'libphonenumber-js/max';

/** Accepts ISO 3166-1 alpha-2 codes in capital letters, e.g. `DE`. */
export function isCountry(text: string): text is CountryCode {
  return isSupportedCountry(text);
}

/**
 * Explains why a number can't exist. We check only the country code and the length, so fictional
 * numbers pass, and so do numbers in ranges that are newer than the library.
 *
 * @param digits E.164, without the `+`
 * @returns undefined if the number is possible
 */
export function whyImpossible(digits: string): string | undefined {
  switch (validatePhoneNumberLength(`+${digits}`)) {
    case undefined:
      return undefined;
    case 'INVALID_COUNTRY':
      return 'does not begin with a valid country code';
    case 'TOO_SHORT':
    case 'NOT_A_NUMBER':
      return 'is too short for its country code';
    case 'TOO_LONG':
      return 'is too long for its country code';
    case 'INVALID_LENGTH':
      return 'does not have a valid length for its country code';
  }
}

/** Accepts a complete E.164 number, without the `+`, if its range is assigned. */
export function isAssigned(digits: string): boolean {
  const number = parsePhoneNumberFromString(`+${digits}`);
  // The comparison is needed because the library drops a national prefix after the country code, as
  // in +44 (0)20….
  return number?.number === `+${digits}` && number.isValid();
}

/** Returns true if the digits start with the country's code, e.g. `49` for `DE`. */
export function hasCountryCode(country: string, digits: string): boolean {
  return isCountry(country) && digits.startsWith(getCountryCallingCode(country));
}

/** A number in its national format, converted to E.164. */
export type NationalReading = {
  /** E.164, without the `+`. */
  readonly digits: string;
  /** True if the number is in an assigned range. */
  readonly isAssigned: boolean;
};

/**
 * Reads digits the way people in `country` dial them, i.e. with or without the national prefix, or
 * after the international prefix.
 *
 * @returns undefined if the digits can't be a phone number
 */
export function readNational(digits: string, country: string): NationalReading | undefined {
  if (!isCountry(country)) return undefined;
  const number = parsePhoneNumberFromString(digits, country);
  if (number?.isPossible() !== true) return undefined;
  return { digits: number.number.slice(1), isAssigned: number.isValid() };
}
