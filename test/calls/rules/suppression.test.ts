import { expect, test } from 'vitest';
import { suppressedAddressOf } from '../../../src/calls/rules/suppression.ts';
import { parseTarget } from '../../../src/calls/target/parse-target.ts';

function addressOf(uri: string): string | undefined {
  const result = parseTarget(uri);
  if (!result.ok) throw new Error(`${uri}: ${result.message}`);
  return suppressedAddressOf(result.target);
}

test.each([
  'tel:+12025550110',
  'tel:+1-202-555-0110',
  'tel:+12025550110;ext=7',
  'sip:+12025550110@carrier.example',
  'sip:+12025550110@10.0.0.1:5080',
  'sip:%2B12025550110@carrier.example',
  'sip:+1202555%30110@carrier.example',
  'sip:+1-202-555-0110;ext=7@carrier.example',
])('%s is suppressed by its number', (uri) => {
  expect(addressOf(uri)).toBe('+12025550110');
});

test.each([
  ['sip:Bob@PBX.Example:5080', 'sip:Bob@pbx.example'],
  ['sip:%42ob@pbx.example', 'sip:Bob@pbx.example'],
  ['sip:12025550110@pbx.example', 'sip:12025550110@pbx.example'],
  ['sip:bob@[2001:db8::1]:5080', 'sip:bob@[2001:db8::1]'],
  ['sip:%ff@pbx.example', 'sip:%ff@pbx.example'],
])('%s is suppressed as %s', (uri, address) => {
  expect(addressOf(uri)).toBe(address);
});

test('a number within a context has no address', () => {
  expect(addressOf('tel:7042;phone-context=pbx.example')).toBeUndefined();
});
