// Keys that one end of a bridge presses: which of them `passKey` passes on, and how.

import { expect, test } from 'vitest';
import type { Keys } from '../../../src/calls/keys/keys.ts';
import { type KeyTransport, type PressedKey, passKey } from '../../../src/calls/keys/keys.ts';

type To = { readonly transport: KeyTransport; readonly acceptsKeys: boolean };

function passed(key: PressedKey, { transport, acceptsKeys }: To): readonly Keys[] {
  const keys: Keys[] = [];
  passKey(key, { transport, acceptsKeys: () => acceptsKeys, press: (each) => keys.push(each) });
  return keys;
}

test.each<[string, KeyTransport, To, boolean]>([
  ['by the media worker', 'rtp', { transport: 'rtp', acceptsKeys: true }, false],
  ['by nobody', 'rtp', { transport: 'rtp', acceptsKeys: false }, false],
  ['by the media worker', 'rtp', { transport: 'info', acceptsKeys: true }, false],
  ['by passKey', 'rtp', { transport: 'info', acceptsKeys: false }, true],
  ['by passKey', 'info', { transport: 'rtp', acceptsKeys: true }, true],
  ['by passKey', 'info', { transport: 'info', acceptsKeys: false }, true],
])('a key is passed on %s: it came as %s, for %j', (_by, source, to, isHere) => {
  const key = { digit: '5', durationMs: 160, source };
  expect(passed(key, to)).toEqual(isHere ? [{ digits: '5', durationMs: 160 }] : []);
});

test('a key keeps its duration, within the shortest and the longest duration of a key', () => {
  const durations = [undefined, 0, 160, 30_000].map((durationMs) =>
    passed({ digit: '1', durationMs, source: 'info' }, { transport: 'rtp', acceptsKeys: true }),
  );
  expect(durations.map(([keys]) => keys?.durationMs)).toEqual([100, 40, 160, 5_000]);
});
