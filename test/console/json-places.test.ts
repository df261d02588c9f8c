// Where the console shows the errors of a rule set.

import { describe, expect, test } from 'vitest';

type Place = { readonly from: number; readonly until: number; readonly line: number };

const page = (await import(
  new URL('../../src/console/page/json-places.js', import.meta.url).href
)) as { readonly placeOf: (text: string, path: string) => Place | undefined };

const text = `{
  "hours": {
    "windows": [
      { "days": "mon-fri", "from": "08:00", "until": "21:00" },
      { "days": "sat, \\"x\\": {", "from": "09:00", "until": "08:00" }
    ],
    "closed": []
  },
  "attempts": [{ "most": 3 }, 7],
  "until": true
}`;

function found(path: string): readonly [string, number] | undefined {
  const place = page.placeOf(text, path);
  return place && [text.slice(place.from, place.until), place.line];
}

describe('a member of a JSON text', () => {
  test.each([
    ['hours', '"hours"', 2],
    ['hours.windows.1.until', '"until"', 5],
    ['hours.closed', '"closed"', 7],
    ['attempts.0', '{', 9],
    ['attempts.0.most', '"most"', 9],
    ['attempts.1', '7', 9],
    ['until', '"until"', 10],
  ])('%s is found', (path, token, line) => {
    expect(found(path)).toEqual([token, line]);
  });

  test('is represented by the member around it if the text lacks it', () => {
    expect(found('attempts.0.within')).toEqual(['{', 9]);
    expect(found('hours.zones')).toEqual(['"hours"', 2]);
  });

  test('is not found if nothing around it is named', () => {
    expect(found('consent')).toBeUndefined();
    expect(found('hour')).toBeUndefined();
  });

  test.each(['[]', '3', '"text"', '{}'])('is not found in %s', (value) => {
    expect(page.placeOf(value, 'hours')).toBeUndefined();
  });
});
