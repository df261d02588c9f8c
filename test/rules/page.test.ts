// The examples of the page about calling rules.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { describeIssues } from '../../src/lib/issues.ts';
import { ruleSetSchema } from '../../src/rules/rule-set.ts';
import { zonesOfNumber } from '../../src/rules/zones/number-zones.ts';

const page = readFileSync(new URL('../../src/rules/README.md', import.meta.url), 'utf8');
const examples = [...page.matchAll(/^```json\n(.*?)^```/gms)].map(([, text = '']) => text);

test.each(examples)('the rule set %# is valid', (text) => {
  const { error } = ruleSetSchema.safeParse(JSON.parse(text), { error: describeIssues });
  expect(error?.issues).toBeUndefined();
});

test('every rule has an example', () => {
  const members = examples.flatMap((text) => Object.keys(JSON.parse(text) as object));
  expect(new Set(members)).toEqual(new Set(Object.keys(ruleSetSchema.shape)));
});

test('the numbers lie in the zones that the page names', () => {
  const [, table = ''] = /\| number \| zones \|\n\|---\|---\|\n(.*?)\n\n/s.exec(page) ?? [];
  const rows = table.split('\n').map((row) => row.split(' | '));
  expect(rows).toHaveLength(4);
  for (const [left = '', right = ''] of rows) {
    const [, number = ''] = /`\+([\d ]+)`/.exec(left) ?? [];
    const zones = zonesOfNumber(number.replaceAll(' ', ''));
    const named = [...right.matchAll(/`(\w+\/\w+)`/g)].map(([, zone]) => zone);
    const [, count] = /the (\d+) zones/.exec(right) ?? [];

    if (right.includes('not known')) expect(zones).toBeUndefined();
    else if (count !== undefined) expect(zones).toHaveLength(Number(count));
    else expect(zones).toEqual(named);
  }
});
