// Checks numbers against the world's numbering plans. This is the only file that imports Google's
// libphonenumber. We need the complete metadata in `/max`, because with less metadata the library
// would only check a number's length.

import {
  type CountryCode,
  getCountries,
  getCountryCallingCode,
  isSupportedCountry,
  Metadata,
  type NumberingPlan,
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
  if (isSurelyPossible(digits)) return undefined;
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

/** What the countries of one calling code have in common. */
type SharedPlan = {
  /** Lengths that are possible in each of the countries. */
  readonly lengths: ReadonlySet<number>;
  /** Matches numbers from which the library may strip a national prefix before it counts digits. */
  readonly prefix: RegExp | undefined;
};

let sharedPlans: ReadonlyMap<string, SharedPlan> | undefined;

/**
 * Reports whether the library would find the number possible, whichever of the countries with its
 * calling code it belongs to. This takes a tenth of the library's time, which a list of a million
 * numbers needs. If the library may read the digits in another way, it decides.
 */
function isSurelyPossible(digits: string): boolean {
  sharedPlans ??= readSharedPlans();
  // No calling code begins with another one.
  for (let length = 1; length <= 3; length += 1) {
    const plan = sharedPlans.get(digits.slice(0, length));
    if (plan === undefined) continue;
    const national = digits.slice(length);
    return plan.lengths.has(national.length) && plan.prefix?.test(national) !== true;
  }
  return false;
}

function readSharedPlans(): ReadonlyMap<string, SharedPlan> {
  const all = getCountries();
  const codes = new Set(all.map((country) => getCountryCallingCode(country)));
  const countriesOf = (code: string) =>
    all.filter((country) => getCountryCallingCode(country) === code);
  return new Map([...codes].map((code) => [code, sharedPlanOf(countriesOf(code))]));
}

/** The library's own types leave this method out. A test compares the results for all countries. */
type ParsingPlan = NumberingPlan & { nationalPrefixForParsing(): string | undefined };

function sharedPlanOf(countries: readonly CountryCode[]): SharedPlan {
  const plans = countries.map((country) => {
    const metadata = new Metadata();
    metadata.selectNumberingPlan(country);
    return metadata.numberingPlan as ParsingPlan;
  });
  const prefixes = new Set(plans.flatMap((plan) => plan.nationalPrefixForParsing() ?? []));
  const [first = new Set<number>(), ...others] = plans.map(
    (plan) => new Set(plan.possibleLengths()),
  );
  return {
    lengths: new Set([...first].filter((length) => others.every((some) => some.has(length)))),
    prefix:
      prefixes.size === 0
        ? undefined
        : new RegExp(`^(?:${[...prefixes].map((prefix) => `(?:${prefix})`).join('|')})`),
  };
}

/** Groups of digits: a number that matches `pattern`, and `leading` at its start, is so written. */
export type NumberFormat = readonly [pattern: string, groups: string, leading?: string];

/** As with `ParsingPlan`, a test compares the results. */
type FormattingPlan = NumberingPlan & {
  formats(): readonly {
    pattern(): string;
    internationalFormat(): string;
    leadingDigitsPatterns(): readonly string[];
  }[];
};

/**
 * Returns how numbers are written after their calling code, by calling code, for a page that can't
 * load the whole library. The first format that matches a number is the one to use.
 */
export function internationalFormats(): Readonly<Record<string, readonly NumberFormat[]>> {
  // The countries of a calling code share the formats of its main country.
  const codes = getCountries().map((country) => [getCountryCallingCode(country), country] as const);
  return Object.fromEntries(codes.map(([code, country]) => [code, formatsIn(country)]));
}

function formatsIn(country: CountryCode): readonly NumberFormat[] {
  const metadata = new Metadata();
  metadata.selectNumberingPlan(country);
  return (metadata.numberingPlan as FormattingPlan).formats().map((format) => {
    const [pattern, groups] = [format.pattern(), format.internationalFormat()];
    // The last pattern is the most detailed one.
    const leading = format.leadingDigitsPatterns().at(-1);
    return leading === undefined ? [pattern, groups] : [pattern, groups, leading];
  });
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
