// The rules with which a trunk rewrites callers and numbers: which rule applies, which rules are
// mistakes, and how long a rule can take.

import { performance } from 'node:perf_hooks';
import { describe, expect, test } from 'vitest';
import { rewrite, rewriteSchema } from '../../src/sip/trunks/rewrite.ts';
import { checkPattern } from '../../src/sip/trunks/rewrite-pattern.ts';
import { loadTrunks } from '../../src/sip/trunks/trunks.ts';

const rulesOf = (...number: readonly (readonly [string, string])[]) =>
  rewriteSchema.parse({ number: number.map(([match, replace]) => ({ match, replace })) }).number;

describe('a rule', () => {
  const american = rulesOf(['\\+1(\\d{10})', '$1'], ['\\+(\\d+)', '011$1'], ['.*', 'any']);

  test.each([
    ['+12025550110', '2025550110'],
    ['+442079460000', '011442079460000'],
    ['+1202555011', '0111202555011'],
    ['anonymous', 'any'],
  ])('%s becomes %s: the first rule that matches the whole value applies', (value, user) => {
    expect(rewrite(value, american)).toEqual({ ok: true, user });
  });

  test('leaves a value alone that no rule matches', () => {
    expect(rewrite('12025550110', rulesOf(['2025550110', 'x']))).toEqual({ ok: true });
    expect(rewrite('+1', undefined)).toEqual({ ok: true });
  });

  test.each([
    ['(\\d)(\\d)(\\d)', '$3$2$1', '123', '321'],
    ['(?:\\+|00)?49(\\d+)', '0$1', '004930', '030'],
    ['^(a|b)$', '$1$$', 'a', 'a$'],
    ['a?(b)?c', '$1x', 'ac', 'x'],
    ['[^#]*', '*67', '123', '*67'],
    ['1(\\d*?)0*', '$1', '12300', '23'],
    ['12', '1%232', '12', '1%232'],
  ])('%s to %s', (match, replace, value, user) => {
    expect(rewrite(value, rulesOf([match, replace]))).toEqual({ ok: true, user });
  });

  test.each([
    ['nothing', '(\\d*)a', '$1', 'a'],
    ['half an escape', '(.*)3', '$1', 'a%23'],
    ['more than 128 characters', '(.*)', '$1$1', '1'.repeat(128)],
  ])('that leaves %s is no user part', (_, match, replace, value) => {
    expect(rewrite(value, rulesOf([match, replace]))).toEqual({ ok: false });
  });
});

describe('the trunks file', () => {
  const load = (rule: string) =>
    loadTrunks({
      secrets: () => ({}),
      file: {
        name: 'trunks.yaml',
        text: `trunks:\n  - name: acme\n    gateways: [{ host: sip.acme.example }]\n    rewrite:\n      caller:\n        - ${rule}\n`,
      },
    });

  test('has rules for callers and for numbers', () => {
    const trunk = load(`{ match: '\\+(\\d+)', replace: '$1' }`).get('acme');
    expect(rewrite('+15550001', trunk?.rewrite?.caller)).toEqual({ ok: true, user: '15550001' });
    expect(trunk?.rewrite?.number).toEqual([]);
  });

  test.each([
    [`{ match: '(', replace: a }`, 'match: is not a valid regular expression'],
    [`{ match: '\\#', replace: a }`, 'match: is not a valid regular expression'],
    [`{ match: '', replace: a }`, 'match: '],
    [`{ match: '${'a'.repeat(257)}', replace: a }`, 'match: '],
    [`{ match: '(a+)+', replace: a }`, 'match: could take too long'],
    [`{ match: '(?=a).*', replace: a }`, 'match: may only have the groups (…) and (?:…)'],
    [`{ match: '(?<a>b)', replace: a }`, 'match: may only have the groups (…) and (?:…)'],
    [`{ match: '(a)\\1', replace: a }`, 'match: may not contain \\1'],
    [`{ match: '\\bx', replace: a }`, 'match: may not contain \\b'],
    [`{ match: 'a{129}', replace: a }`, 'match: may repeat a part at most 128 times'],
    [`{ match: '(a{100}){2}', replace: a }`, 'match: matches nothing'],
    [`{ match: '(a)', replace: '$2' }`, 'replace: contains $2, but match has 1 groups'],
    [`{ match: 'a', replace: '$0' }`, 'replace: may only contain $1 to $9'],
    [`{ match: 'a', replace: '$&' }`, 'replace: may only contain $1 to $9'],
    [`{ match: 'a', replace: 'a@b' }`, 'replace: may only contain characters of the user part'],
    [`{ match: 'a', replace: "1\\r\\nVia" }`, 'replace: may only contain characters'],
    [`{ match: 'a', replace: '#31' }`, 'replace: may only contain characters'],
    [`{ match: 'a', replace: '' }`, 'replace: '],
    [`{ match: 'a', replace: 'b', with: 'b' }`, 'unknown: with'],
  ])('names the line and the field of the rule %s', (rule, message) => {
    expect(() => load(rule)).toThrow(`trunks.yaml:6: trunks[0].rewrite.caller[0]`);
    expect(() => load(rule)).toThrow(message);
  });
});

describe('a pattern', () => {
  test.each([
    ...['(a*)*b', '(a|a)*b', '(a|aa)+b', '(.*)*', '((a?)+)+', '(a?){40}b', '(.*){3}b'],
    ...['.*.*.*.*.*b', 'a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?b', '(?:a{0,128}){0,2}.*b'],
    ...['(\\d+|\\w+)*b', '(a|b|c|d){9}.*'],
  ])('%s could take too long', (pattern) => {
    expect(checkPattern(pattern)).toMatchObject({ ok: false });
  });

  test.each([
    ...['\\+1(\\d{10})', '(?:\\+|00)?(\\d+)', '.*', '(\\d*?)0*', '(?:ab)*(c|d)?', '[^\\]]+'],
    ...['(\\d+);phone-context=pbx\\.example', '(?:1|2|3|4|5)?(\\d{3,})x{0,3}'],
  ])('%s is allowed', (pattern) => {
    expect(checkPattern(pattern)).toMatchObject({ ok: true });
  });

  // The worst patterns that the check allows, with values on which every way fails.
  test.each([
    ['.*.*b', 'a'.repeat(128)],
    ['a*a*b', 'a'.repeat(128)],
    ['(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)a*b', 'a'.repeat(128)],
    ['a?a?a?a?a?a?a?a?a?a?a?a?a?a?b', 'a'.repeat(128)],
    ['(?:a|a){13}b', 'a'.repeat(128)],
  ])('%s, which is allowed, ends soon', (pattern, value) => {
    expect(checkPattern(pattern)).toMatchObject({ ok: true });
    const rules = rulesOf([pattern, 'x']);
    const startedAt = performance.now();
    expect(rewrite(value, rules)).toEqual({ ok: true });
    expect(performance.now() - startedAt).toBeLessThan(1_000);
  });
});
