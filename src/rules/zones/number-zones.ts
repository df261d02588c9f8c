// The time zones in which a telephone number may be. A number's prefix says where it was issued,
// which isn't always where the person is: mobile numbers move. Requests that know better say so in
// `timeZone`.

import { zoneTable } from './zone-table.ts';

/** By prefix. Many prefixes share a list. */
const zonesByPrefix = readTable(zoneTable);
const longestPrefix = Math.max(...[...zonesByPrefix.keys()].map((prefix) => prefix.length));

/**
 * Returns the zones of the longest prefix that the table has. The shortest prefixes are country
 * codes, with every zone of the country.
 *
 * @param number E.164 digits, without the `+`
 * @returns undefined if the table doesn't have the country code, e.g. that of satellite phones
 */
export function zonesOfNumber(number: string): readonly string[] | undefined {
  for (let length = Math.min(longestPrefix, number.length); length > 0; length -= 1) {
    const zones = zonesByPrefix.get(number.slice(0, length));
    if (zones !== undefined) return zones;
  }
  return undefined;
}

function readTable(text: string): ReadonlyMap<string, readonly string[]> {
  const table = new Map<string, readonly string[]>();
  for (const line of text.trim().split(/\n(?! )/)) {
    const words = line.split(/\s+/);
    const zones = words.filter((word) => word.includes('/'));
    let before = '';
    for (const word of words.slice(zones.length)) {
      const prefix = word.replace('.', before.slice(0, -1));
      table.set(prefix, zones);
      before = prefix;
    }
  }
  return table;
}
