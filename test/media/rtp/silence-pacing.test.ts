// Pacing of silence while our side is silent: all of it for a second, then an occasional packet.

import { expect, test } from 'vitest';
import { PlayoutPool } from '../../../src/media/playout/playout-pool.ts';
import { PlayoutQueue } from '../../../src/media/playout/playout-queue.ts';
import { testSound } from '../../support/test-sound.ts';
import { quietBot } from '../support/quiet-bot.ts';
import { remote, SessionBench } from '../support/session-bench.ts';

const everyTicks = 10;
const secondTicks = 50;
const frameBytes = 160;

function answered(): SessionBench {
  const bench = new SessionBench(undefined, everyTicks);
  bench.session.applyRemote(remote, 'answer');
  return bench;
}

/** Returns how many packets the next ticks send. */
function sentIn(bench: SessionBench, ticks: number): number {
  const before = bench.sent.length;
  bench.tick(ticks);
  return bench.sent.length - before;
}

const hello = {
  playbackId: 'hello',
  source: 'command',
  sound: testSound('hello', new Uint8Array(3 * frameBytes).fill(7)),
} as const;

test('sends all silence for a second, then a packet in every tenth tick', () => {
  const bench = answered();

  expect(sentIn(bench, secondTicks)).toBe(secondTicks);
  expect(sentIn(bench, 5 * secondTicks)).toBe((5 * secondTicks) / everyTicks);
});

test('leaves no gap in numbers, follows the time in timestamps, and marks each packet after a gap', () => {
  const bench = answered();
  bench.tick(secondTicks);
  const [last] = bench.sent.slice(-1);
  bench.tick(2 * everyTicks);

  const after = bench.sent.slice(secondTicks);
  const steps = after.map(({ sequence, timestamp, marker }) => ({
    packets: (sequence - (last?.sequence ?? 0)) & 0xffff,
    samples: (timestamp - (last?.timestamp ?? 0)) >>> 0,
    marker,
  }));
  expect(steps).toEqual([
    { packets: 1, samples: everyTicks * frameBytes, marker: true },
    { packets: 2, samples: 2 * everyTicks * frameBytes, marker: true },
  ]);
});

test('starts a sound in the tick after its request, and sends all silence for a second after it', () => {
  const bench = answered();
  bench.tick(secondTicks + 3);
  const before = bench.sent.length;
  bench.session.execute({ kind: 'play', playback: hello });

  bench.tick(3);
  expect(bench.sent.slice(before).map(({ payload }) => payload[0])).toEqual([7, 7, 7]);
  expect(bench.sent.slice(before).map(({ marker }) => marker)).toEqual([true, false, false]);
  expect(sentIn(bench, secondTicks)).toBe(secondTicks);
  expect(sentIn(bench, secondTicks)).toBe(secondTicks / everyTicks);
});

test('sends all silence while a call has a bot that says nothing', () => {
  const bench = answered();
  bench.tick(2 * secondTicks);
  const queue = new PlayoutQueue(new PlayoutPool(1_000), () => undefined);
  bench.session.streaming.start(quietBot, queue);

  expect(sentIn(bench, 2 * secondTicks)).toBe(2 * secondTicks);
});

test('sends all of ringback, including its pauses', () => {
  const bench = answered();
  bench.tick(2 * secondTicks);
  bench.session.ring(true);

  expect(sentIn(bench, 6 * secondTicks)).toBe(6 * secondTicks);
});

test.each([
  ['was on hold', (bench: SessionBench) => hold(bench)],
  ['is elsewhere now', (bench: SessionBench) => move(bench)],
])('sends all silence for a second to a far end that %s', (_which, change) => {
  const bench = answered();
  bench.tick(2 * secondTicks);
  change(bench);

  expect(sentIn(bench, secondTicks)).toBe(secondTicks);
  expect(sentIn(bench, secondTicks)).toBe(secondTicks / everyTicks);
});

function hold(bench: SessionBench): void {
  bench.session.applyRemote({ ...remote, weSend: false }, 'answer');
  expect(sentIn(bench, secondTicks)).toBe(0);
  bench.session.applyRemote(remote, 'answer');
}

function move(bench: SessionBench): void {
  bench.session.applyRemote({ ...remote, port: 5_000 }, 'answer');
}
