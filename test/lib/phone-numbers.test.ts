// The quick check of a number's length, against the library's own.

import fc from 'fast-check';
import {
  getCountries,
  getCountryCallingCode,
  validatePhoneNumberLength,
} from 'libphonenumber-js/max';
import { expect, test } from 'vitest';
import { whyImpossible } from '../../src/lib/phone-numbers.ts';

const runs = Number(process.env['PHONE_NUMBERS'] ?? 5_000);
const digits = (maxLength: number) => fc.stringMatching(/^[0-9]*$/, { maxLength });
const codes = [...new Set(getCountries().map((country) => getCountryCallingCode(country)))];

test('a number is possible if and only if libphonenumber says so', () => {
  const numbers = fc.oneof(
    { weight: 1, arbitrary: digits(15).filter((text) => text.length > 2) },
    {
      weight: 9,
      arbitrary: fc
        // National prefixes and what follows them are where the library reads digits differently.
        .tuple(
          fc.constantFrom<string>(...codes),
          fc.constantFrom('', '0', '1', '8', '9', '15'),
          digits(11),
        )
        .map((parts) => parts.join('')),
    },
  );
  fc.assert(
    fc.property(numbers, (number) => {
      const isPossible = validatePhoneNumberLength(`+${number}`) === undefined;
      expect([number, whyImpossible(number) === undefined]).toEqual([number, isPossible]);
    }),
    { numRuns: runs, seed: 20_261_128 },
  );
});
