// Keys that one end of a bridge presses: which of them are passed on here, and how.

import { expect, test } from 'vitest';
import type { Keys } from '../../../src/calls/keys/keys.ts';
import { type KeyTransport, type PressedKey, passKey } from '../../../src/calls/keys/keys.ts';

type To = { readonly transport: KeyTransport; readonly takesKeys: boolean };

function passed(key: PressedKey, { transport, takesKeys }: To): readonly Keys[] {
  const keys: Keys[] = [];
  passKey(key, { transport, takesKeys: () => takesKeys, press: (each) => keys.push(each) });
  return keys;
}

test.each<[string, KeyTransport, To, boolean]>([
  ['by the media worker', 'rtp', { transport: 'rtp', takesKeys: true }, false],
  ['by neither way', 'rtp', { transport: 'rtp', takesKeys: false }, false],
  ['by the media worker', 'rtp', { transport: 'info', takesKeys: true }, false],
  ['here', 'rtp', { transport: 'info', takesKeys: false }, true],
  ['here', 'info', { transport: 'rtp', takesKeys: true }, true],
  ['here', 'info', { transport: 'info', takesKeys: false }, true],
])('%s: one that came as %s, to %j', (_by, source, to, isHere) => {
  const key = { digit: '5', durationMs: 160, source };
  expect(passed(key, to)).toEqual(isHere ? [{ digits: '5', durationMs: 160 }] : []);
});

test('is as long as it was, where that is a length for a key', () => {
  const durations = [undefined, 0, 160, 30_000].map((durationMs) =>
    passed({ digit: '1', durationMs, source: 'info' }, { transport: 'rtp', takesKeys: true }),
  );
  expect(durations.map(([keys]) => keys?.durationMs)).toEqual([100, 40, 160, 5_000]);
});
