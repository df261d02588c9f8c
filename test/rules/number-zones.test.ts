import { getCountries, getCountryCallingCode } from 'libphonenumber-js/max';
import { describe, expect, test } from 'vitest';
import { isTimeZone } from '../../src/lib/local-days.ts';
import { zonesOfNumber } from '../../src/rules/zones/number-zones.ts';
import { zoneTable } from '../../src/rules/zones/zone-table.ts';

describe('the zones of a number', () => {
  test.each([
    ['12025550110', ['America/New_York']],
    ['13125550110', ['America/Chicago']],
    // Idaho is in two zones, and the exchange says in which.
    ['12082010000', ['America/Denver']],
    ['12082150000', ['America/Los_Angeles']],
    ['493012345678', ['Europe/Berlin']],
    // A table has both names of this zone. The runtime knows it by either.
    ['911123456789', ['Asia/Calcutta']],
  ])('%s', (number, expected) => {
    expect(zonesOfNumber(number)).toEqual(expected);
  });

  test('a number whose prefix the table does not have may be in every zone of its country', () => {
    // Nobody has been given area code 950.
    const zones = zonesOfNumber('19505550110');

    expect(zones).toHaveLength(42);
    expect(zones).toEqual(expect.arrayContaining(['Pacific/Guam', 'America/St_Johns']));
    expect(zonesOfNumber('1')).toEqual(zones);
  });

  test('numbers of satellite phones and other networks without a country have no known zone', () => {
    for (const number of ['870773111632', '881612345678', '80012345678', '999', '']) {
      expect(zonesOfNumber(number)).toBeUndefined();
    }
  });

  test('every country code has zones', () => {
    const codes = new Set(getCountries().map((country) => getCountryCallingCode(country)));
    expect([...codes].filter((code) => zonesOfNumber(code) === undefined)).toEqual([]);
  });

  test('the runtime knows every zone', () => {
    const zones = new Set(zoneTable.split(/\s+/).filter((word) => word.includes('/')));

    expect(zones.size).toBeGreaterThan(280);
    expect([...zones].filter((zone) => !isTimeZone(zone))).toEqual([]);
  });
});
