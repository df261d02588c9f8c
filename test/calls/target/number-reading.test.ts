// Which phone number a text stands for: with `+`, and without it for each setting.

import examples from 'libphonenumber-js/examples.mobile.json' with { type: 'json' };
import {
  type CountryCode,
  getCountries,
  getCountryCallingCode,
  parsePhoneNumberFromString,
} from 'libphonenumber-js/max';
import { describe, expect, test } from 'vitest';
import { uriOfTarget } from '../../../src/calls/target/dial-target.ts';
import { type NumberReading, readingFor } from '../../../src/calls/target/number-reading.ts';
import { parseTarget } from '../../../src/calls/target/parse-target.ts';
import { sandboxNumbers } from '../../../src/embedded/sandbox/sandbox-numbers.ts';

function read(text: string, reading?: NumberReading): string {
  const result = parseTarget(text, reading);
  return result.ok ? uriOfTarget(result.target) : result.message;
}

describe('a number with +', () => {
  test.each([
    'tel:+15551230001',
    'tel:+2025550110',
    'tel:+4930901820',
    'tel:+80012345678',
    'tel:+5491123456789',
    ...sandboxNumbers.map(({ number }) => `tel:${number}`),
  ])('%s is dialled unchanged, even if it is fictional', (uri) => {
    expect(read(uri)).toBe(uri);
    expect(read(uri, { defaultCountry: 'DE' })).toBe(uri);
    expect(read(uri, { bareNumbers: 'international' })).toBe(uri);
  });

  test.each([
    ['tel:+1202555', 'is too short for its country code'],
    ['tel:+112', 'is too short for its country code'],
    ['tel:+120255501100', 'is too long for its country code'],
    ['tel:+33123456', 'is too short for its country code'],
    ['tel:+9991234567', 'does not begin with a valid country code'],
    ['tel:+0012025550110', 'does not begin with a valid country code'],
  ])('%s is refused: it %s', (uri, message) => {
    expect(read(uri)).toBe(message);
    expect(read(uri, { bareNumbers: 'international' })).toBe(message);
  });
});

describe('a number without + and without a setting', () => {
  test.each([
    ['tel:12025550130', 'tel:+12025550130'],
    ['tel:1-202-555-0130', 'tel:+12025550130'],
    ['tel:4930901820', 'tel:+4930901820'],
    ['tel:447911123456', 'tel:+447911123456'],
  ])('%s is valid with a +: %s', (text, uri) => {
    expect(read(text)).toBe(uri);
  });

  test.each([
    ['a national number of the US', 'tel:2025550110'],
    ['the same number as people write it', 'tel:(202)555-0110'],
    ['a German number with its national prefix', 'tel:01711234567'],
    ['a number after the prefix of international calls', 'tel:00491711234567'],
    ['a fictional number, which is possible but not assigned', 'tel:15551230001'],
    ['a number with a national prefix after its country code', 'tel:4402071838750'],
  ])('%s is refused, and the message names the settings', (_name, text) => {
    const message = read(text);

    expect(message).toContain('defaultCountry, e.g. "US"');
    expect(message).toContain('bareNumbers: "international"');
  });

  test('the message does not contain the number, because it may be logged', () => {
    expect(read('tel:2025550110')).not.toMatch(/\d/);
  });
});

describe('a number without + in a default country', () => {
  test.each([
    ['US', 'tel:2025550110', 'tel:+12025550110'],
    ['US', 'tel:(202)555-0110', 'tel:+12025550110'],
    ['US', 'tel:12025550110', 'tel:+12025550110'],
    ['US', 'tel:5551230001', 'tel:+15551230001'],
    ['US', 'tel:0114930901820', 'tel:+4930901820'],
    ['US', 'tel:447911123456', 'tel:+447911123456'],
    ['CA', 'tel:4165551234', 'tel:+14165551234'],
    ['DE', 'tel:01711234567', 'tel:+491711234567'],
    ['DE', 'tel:1711234567', 'tel:+491711234567'],
    ['DE', 'tel:00441711234567', 'tel:+441711234567'],
    ['DE', 'tel:491711234567', 'tel:+491711234567'],
    ['DE', 'tel:12025550130', 'tel:+12025550130'],
    ['GB', 'tel:02071838750', 'tel:+442071838750'],
    ['IT', 'tel:0612345678', 'tel:+390612345678'],
    ['RU', 'tel:88005553535', 'tel:+78005553535'],
  ])('%s: %s is %s', (defaultCountry, text, uri) => {
    expect(read(text, { defaultCountry })).toBe(uri);
  });

  test('is a number of the country even if it would also be valid abroad', () => {
    // The number is in Tampa or in Singapore.
    expect(read('tel:6562345678')).toBe('tel:+6562345678');
    expect(read('tel:6562345678', { defaultCountry: 'US' })).toBe('tel:+16562345678');
    expect(read('tel:6562345678', { defaultCountry: 'DE' })).not.toBe('tel:+16562345678');
  });

  test.each([
    ['US', 'tel:911'],
    ['US', 'tel:5550110'],
    ['DE', 'tel:110'],
    ['DE', 'tel:00'],
  ])('%s: %s is refused, because it cannot be dialled from abroad', (defaultCountry, text) => {
    expect(read(text, { defaultCountry })).not.toMatch(/^tel:/);
  });

  test('reads the mobile number of every country, both with its country code and as it is dialled there', () => {
    const wrong: string[] = [];
    for (const country of getCountries()) {
      const national = (examples as Readonly<Partial<Record<CountryCode, string>>>)[country];
      if (national === undefined) continue;
      const uri = `tel:+${getCountryCallingCode(country)}${national}`;
      const dialled = parsePhoneNumberFromString(uri.slice(4))?.formatNational() ?? '';
      const read1 = read(`tel:${dialled.replaceAll(/\D/g, '')}`, { defaultCountry: country });
      const read2 = read(uri.replace('+', ''), { defaultCountry: country });
      const read3 = read(uri.replace('+', ''));
      if (read1 !== uri || read2 !== uri || read3 !== uri)
        wrong.push(`${country} ${uri}: ${dialled} ${read1} ${read2} ${read3}`);
    }

    expect(wrong).toEqual([]);
  });
});

describe('numbers without + with `bareNumbers: international`', () => {
  test.each([
    ['tel:2025550110', 'tel:+2025550110'],
    ['tel:15551230001', 'tel:+15551230001'],
    ['tel:12025550130', 'tel:+12025550130'],
  ])('%s is %s', (text, uri) => {
    expect(read(text, { bareNumbers: 'international' })).toBe(uri);
  });
});

test('the settings of a request replace those of its app', () => {
  const international = { bareNumbers: 'international' } as const;
  const american = { defaultCountry: 'US' };

  expect(readingFor({}, american)).toEqual(american);
  expect(readingFor({}, international)).toEqual(international);
  expect(readingFor(american, international)).toEqual(american);
  expect(readingFor(international, american)).toEqual(international);
  expect(readingFor({ defaultCountry: 'DE' }, american)).toEqual({ defaultCountry: 'DE' });
  expect(readingFor({}, {})).toEqual({});
});

test.each(['tel:+1 202 555 0110', 'tel:(202) 555-0110', 'tel:+1202\t5550110'])(
  'names the blank in %s, and how to write the number',
  (text) => {
    expect(parseTarget(text, { defaultCountry: 'US' })).toEqual({
      ok: false,
      message: 'must not contain spaces; write e.g. tel:+1-202-555-0110',
    });
  },
);
