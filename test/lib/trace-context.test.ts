import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  parseTraceHeaders,
  parseTraceparent,
  parseTracestate,
  traceHeadersOf,
  writeTraceparent,
} from '../../src/lib/trace-context.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const traceparent = `00-${traceId}-00f067aa0ba902b7-01`;

describe('traceparent', () => {
  test('is read and written', () => {
    const parent = { traceId, spanId: '00f067aa0ba902b7', isSampled: true };

    expect(parseTraceparent(traceparent)).toEqual(parent);
    expect(writeTraceparent(parent)).toBe(traceparent);
    expect(parseTraceparent(traceparent.replace(/01$/, '00'))?.isSampled).toBe(false);
  });

  test('of a later version may have more fields', () => {
    expect(parseTraceparent(`01${traceparent.slice(2)}-what-the-future-holds`)?.traceId).toBe(
      traceId,
    );
  });

  test.each([
    undefined,
    5,
    '',
    ['a', 'b'],
    traceparent.toUpperCase(),
    `ff${traceparent.slice(2)}`,
    `${traceparent}-more`,
    `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId.slice(1)}-00f067aa0ba902b7-01`,
    `00-${traceId}-00f067aa0ba902b7-0x`,
    `01${traceparent.slice(2)}-${'x'.repeat(600)}`,
  ])('is ignored if it is malformed: %s', (header) => {
    expect(parseTraceparent(header)).toBeUndefined();
  });
});

describe('tracestate', () => {
  test.each([
    [
      'as it came',
      'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE',
      'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE',
    ],
    ['without blanks and empty members', ' a=1 ,\t, b=2,,', 'a=1,b=2'],
    ['with a tenant', 'fw529a3039@dt=FfFf:x/y;z', 'fw529a3039@dt=FfFf:x/y;z'],
    ['with blanks inside a value', 'a=1 2', 'a=1 2'],
    [
      'with the first of two members with one key, which is the newer one',
      'a=2,b=1,a=1',
      'a=2,b=1',
    ],
    ['with 32 members', membersOf(32), membersOf(32)],
  ])('is kept %s', (_, header, kept) => {
    expect(parseTracestate(header)).toBe(kept);
  });

  test.each([
    ['nothing', ''],
    ['empty members', ' , ,'],
    ['not text', ['a=1']],
    ['no value', 'a='],
    ['no key', '=1'],
    ['no equals sign', 'a=1,b'],
    ['a capital in a key', 'A=1'],
    ['an equals sign in a value', 'a=1=2'],
    ['a control character', 'a=1\u0000'],
    ['a character outside ASCII', 'a=ü'],
    ['a key of 257 characters', `${'k'.repeat(257)}=1`],
    ['a value of 257 characters', `a=${'v'.repeat(257)}`],
    ['33 members', membersOf(33)],
    ['more characters than servers accept', 'a=1,'.padEnd(20_000, ',')],
  ])('is ignored with %s', (_, header) => {
    expect(parseTracestate(header)).toBeUndefined();
  });

  test('of more than 512 characters loses long members first, then the last ones', () => {
    const long = `long=${'v'.repeat(200)}`;
    const short = (key: string) => `${key}=${'v'.repeat(98)}`;
    const five = ['a', 'b', 'c', 'd', 'e'].map(short);

    expect(parseTracestate([long, ...five.slice(0, 4)].join(','))).toBe(five.slice(0, 4).join(','));
    expect(parseTracestate([...five, short('f')].join(','))).toBe(five.join(','));
    expect(parseTracestate([long, 'a=1', long.replace('long', 'more')].join(','))).toBe(
      [long, 'a=1', long.replace('long', 'more')].join(','),
    );
  });

  test('is within the bounds after parsing, and stable, for any input', () => {
    const member = fc.tuple(
      fc.stringMatching(/^[a-z0-9@]{1,40}$/),
      fc.string({ unit: 'grapheme-ascii', maxLength: 200 }),
    );
    const header = fc.array(
      member.map(([key, value]) => `${key}=${value}`),
      { maxLength: 40 },
    );
    fc.assert(
      fc.property(
        fc.oneof(
          header.map((all) => all.join(',')),
          fc.string(),
          fc.anything(),
        ),
        (given) => {
          const kept = parseTracestate(given);
          if (kept === undefined) return;
          expect(kept.length).toBeLessThanOrEqual(512);
          expect(kept.split(',').length).toBeLessThanOrEqual(32);
          expect(parseTracestate(kept)).toBe(kept);
        },
      ),
    );
  });
});

function membersOf(count: number): string {
  return Array.from({ length: count }, (_, index) => `k${index}=1`).join(',');
}

describe('the headers of a request', () => {
  test('are passed on together', () => {
    expect(parseTraceHeaders({ traceparent, tracestate: 'a=1' })).toEqual({
      ...{ traceparent, tracestate: 'a=1' },
    });
  });

  test('keep the traceparent if the tracestate is malformed', () => {
    expect(parseTraceHeaders({ traceparent, tracestate: 'a=' })).toEqual({ traceparent });
  });

  test('never contain a tracestate alone', () => {
    expect(parseTraceHeaders({ tracestate: 'a=1' })).toBeUndefined();
    expect(
      parseTraceHeaders({ traceparent: `${traceparent}, ${traceparent}`, tracestate: 'a=1' }),
    ).toBeUndefined();
    expect(traceHeadersOf({ traceparent: null, tracestate: 'a=1' })).toBeUndefined();
  });
});
