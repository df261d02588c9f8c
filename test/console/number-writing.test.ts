// Numbers on the pages are grouped as libphonenumber groups them. The browser only has a table.

import examples from 'libphonenumber-js/examples.mobile.json' with { type: 'json' };
import { getCountries, getExampleNumber, parsePhoneNumberFromString } from 'libphonenumber-js/max';
import { expect, test } from 'vitest';
import { internationalFormats } from '../../src/lib/phone-numbers.ts';

const { writeCaller, writeNumber } = (await import(
  new URL('../../src/console/page/number-writing.js', import.meta.url).href
)) as Record<'writeCaller' | 'writeNumber', (text: string, formats: object) => string>;
const formats = internationalFormats();
const write = (text: string) => writeNumber(text, formats);

test('numbers of every country are written as libphonenumber writes them', () => {
  let compared = 0;
  for (const country of getCountries()) {
    const example = getExampleNumber(country, examples)?.number ?? '';
    // Numbers of other areas and lines: the example with its digits after the code changed.
    for (let change = 0; change < 40; change += 1) {
      const at = 4 + (change % 6);
      const number = `${example.slice(0, at)}${(change * 7) % 10}${example.slice(at + 1)}`;
      const parsed = parsePhoneNumberFromString(number);
      // The library drops a national prefix after the calling code; the page leaves it there.
      if (parsed?.number !== number || !parsed.isValid()) continue;
      expect(write(number)).toBe(parsed.formatInternational());
      compared += 1;
    }
  }
  expect(compared).toBeGreaterThan(2_000);
});

test.each([
  ['+12025550110', '+1 202 555 0110'],
  ['+493012345678', '+49 30 12345678'],
  ['+442079460123', '+44 20 7946 0123'],
  ['+12025550110;ext=12', '+1 202 555 0110 ext. 12'],
])('%s is written %s', (number, written) => {
  expect(write(number)).toBe(written);
});

test.each([
  '15559876543',
  '+999123456',
  '+1',
  'anna@example.com',
  '+1<img src=x>',
  "+1'-alert(1)-'",
  'anonymous',
  '',
])('%s is left as it is', (text) => {
  expect(write(text)).toBe(text);
});

test.each([
  ['15559876543', '1 555 987 6543'],
  ['442079460123', '44 20 7946 0123'],
  ['+15559876543', '+1 555 987 6543'],
  // Perhaps a national number.
  ['2025550110', '2025550110'],
  ['02079460123', '02079460123'],
  ["1'-alert(1)-'", "1'-alert(1)-'"],
  ['', ''],
])('the caller ID %s is written %s', (caller, written) => {
  expect(writeCaller(caller, formats)).toBe(written);
});
