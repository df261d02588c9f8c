// The parameters of `tel:` targets (RFC 3966): extensions and local numbers with their context.

import { describe, expect, test } from 'vitest';
import { mayDial } from '../../../src/calls/target/app-limits.ts';
import { uriOfTarget } from '../../../src/calls/target/dial-target.ts';
import { isBareNumber, parseTarget } from '../../../src/calls/target/parse-target.ts';

const tel = (number: string, ext?: string) =>
  ({ kind: 'tel', number, ...(ext === undefined ? {} : { ext }) }) as const;
const local = (digits: string, phoneContext: string, ext?: string) =>
  ({ kind: 'local', digits, phoneContext, ...(ext === undefined ? {} : { ext }) }) as const;

describe('a target', () => {
  test.each([
    ['tel:+12025550110;ext=123', tel('12025550110', '123'), 'tel:+12025550110;ext=123'],
    ['tel:+1-202-555-0110;EXT=1-2(3)', tel('12025550110', '123'), 'tel:+12025550110;ext=123'],
    ['tel:7042;phone-context=example.com', local('7042', 'example.com'), undefined],
    [
      'tel:70-42;phone-context=Example.COM',
      local('7042', 'example.com'),
      'tel:7042;phone-context=example.com',
    ],
    ['tel:911;phone-context=+1', local('911', '+1'), undefined],
    [
      'tel:7042;phone-context=+1-202-555',
      local('7042', '+1202555'),
      'tel:7042;phone-context=+1202555',
    ],
    ['tel:*21#;phone-context=pbx.example', local('*21#', 'pbx.example'), undefined],
    [
      'tel:7042;phone-context=pbx.example;ext=1',
      local('7042', 'pbx.example', '1'),
      'tel:7042;ext=1;phone-context=pbx.example',
    ],
  ])('%s is read, and written in one form', (text, target, uri) => {
    const result = parseTarget(text);
    expect(result).toEqual({ ok: true, target });
    expect(result.ok && uriOfTarget(result.target)).toBe(uri ?? text);
  });

  test('without + keeps its extension', () => {
    const text = 'tel:2025550110;ext=7';
    expect(isBareNumber(text)).toBe(true);
    expect(parseTarget(text, { defaultCountry: 'US' })).toEqual({
      ok: true,
      target: tel('12025550110', '7'),
    });
    expect(isBareNumber('tel:2025550110;phone-context=+1')).toBe(false);
  });

  test.each([
    ['tel:+12025550110;isub=1411', 'the tel: parameter isub is not supported'],
    ['tel:+12025550110;foo', 'the tel: parameter foo is not supported'],
    ['tel:+12025550110;', 'the tel: parameter  is not supported'],
    ['tel:+12025550110;postd=22', 'the tel: parameter postd is not supported'],
    ['tel:+12025550110;ext=', 'ext must be 1 to 20 digits'],
    ['tel:+12025550110;ext=1a', 'ext must be 1 to 20 digits'],
    ['tel:+12025550110;ext=1%0d%0a', 'ext must be 1 to 20 digits'],
    [`tel:+12025550110;ext=${'1'.repeat(21)}`, 'ext must be 1 to 20 digits'],
    ['tel:+12025550110;ext=1;ext=2', 'given twice'],
    ['tel:+12025550110;phone-context=+1', 'belongs to a number without +'],
    ['tel:;phone-context=+1', 'must have 1 to 20 digits'],
    ['tel:12a;phone-context=+1', 'must have 1 to 20 digits'],
    [`tel:${'1'.repeat(21)};phone-context=+1`, 'must have 1 to 20 digits'],
    ['tel:7042;phone-context=', 'phone-context must be'],
    ['tel:7042;phone-context=+', 'phone-context must be'],
    ['tel:7042;phone-context=+1234567890123456', 'phone-context must be'],
    ['tel:7042;phone-context=a b', 'phone-context must be'],
    ['tel:7042;phone-context=a@b', 'phone-context must be'],
    ['tel:7042;phone-context=[::1]', 'phone-context must be'],
    [`tel:7042;phone-context=${'a'.repeat(63)}.example`, 'phone-context must be'],
  ])('%s is rejected', (text, message) => {
    expect(parseTarget(text)).toMatchObject({
      ok: false,
      message: expect.stringContaining(message),
    });
  });
});

describe("an app's limits", () => {
  test('look at the number without its extension', () => {
    const limits = { allowedPrefixes: ['1202'] };
    expect(mayDial(limits, tel('12025550110', '7'))).toBe(true);
    expect(mayDial(limits, tel('4930123456', '1202'))).toBe(false);
  });

  test('never allow a local number, whose digits say nothing about the country', () => {
    expect(mayDial({ allowedPrefixes: ['1'] }, local('12025550110', '+1'))).toBe(false);
    expect(mayDial({ deniedPrefixes: ['1900'] }, local('7042', 'pbx.example'))).toBe(false);
    expect(mayDial({}, local('7042', 'pbx.example'))).toBe(true);
  });
});
