// Targets of the console's form as people type them.

import { describe, expect, test } from 'vitest';
import { sandboxNumbers } from '../../src/embedded/sandbox/sandbox-numbers.ts';

type Read = (
  typed: string,
  sandbox: readonly object[],
) => { readonly uri?: string; readonly message?: string };
const page = (await import(
  new URL('../../src/console/page/typed-target.js', import.meta.url).href
)) as { readonly readTarget: Read };
const read = (typed: string) => page.readTarget(typed, sandboxNumbers);

describe('the target of the form', () => {
  test.each([
    ['+12025550110', 'tel:+12025550110'],
    ['+1 (202) 555-0110', 'tel:+12025550110'],
    ['tel:+12025550110', 'tel:+12025550110'],
    ['tel:2025550110', 'tel:2025550110'],
    ['+1 (202) 555-0110;ext=7', 'tel:+12025550110;ext=7'],
    ['talker', 'tel:+12025550104'],
    ['sip:agents@pbx.example', 'sip:agents@pbx.example'],
    ['nobody', 'nobody'],
  ])('%s is read as %s', (typed, uri) => {
    expect(read(typed)).toEqual({ uri });
  });

  test.each([
    ['(202) 555-0110', 'write +1 202 555 0110'],
    ['2025550110', 'write +1 202 555 0110'],
    ['1 202 555 0130', 'write +1 202 555 0130'],
    ['0171 1234567', 'write it with + in front'],
    ['4930901820', 'write it with + in front'],
  ])('%s has no country code', (typed, advice) => {
    const { uri, message } = read(typed);

    expect(uri).toBeUndefined();
    expect(message).toContain(`has no country code: ${advice}`);
  });
});
