// Keys that one end of a bridge presses: which of them `passKey` passes on, and how.

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
  ['by nobody', 'rtp', { transport: 'rtp', takesKeys: false }, false],
  ['by the media worker', 'rtp', { transport: 'info', takesKeys: true }, false],
  ['by passKey', 'rtp', { transport: 'info', takesKeys: false }, true],
  ['by passKey', 'info', { transport: 'rtp', takesKeys: true }, true],
  ['by passKey', 'info', { transport: 'info', takesKeys: false }, true],
])('a key is passed on %s: it came as %s, for %j', (_by, source, to, isHere) => {
  const key = { digit: '5', durationMs: 160, source };
  expect(passed(key, to)).toEqual(isHere ? [{ digits: '5', durationMs: 160 }] : []);
});

test('a key keeps its duration, within the shortest and the longest duration of a key', () => {
  const durations = [undefined, 0, 160, 30_000].map((durationMs) =>
    passed({ digit: '1', durationMs, source: 'info' }, { transport: 'rtp', takesKeys: true }),
  );
  expect(durations.map(([keys]) => keys?.durationMs)).toEqual([100, 40, 160, 5_000]);
});
