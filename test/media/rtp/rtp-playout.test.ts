// A bot's audio as RTP: the session with its queue, compared with a model, on a clock that the test
// controls.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { mulawToAlaw, silenceByte } from '../../../src/media/g711.ts';
import { PlayoutClock } from '../../../src/media/playout/playout.ts';
import { PlayoutPool } from '../../../src/media/playout/playout-pool.ts';
import { PlayoutQueue } from '../../../src/media/playout/playout-queue.ts';
import { randomFrom } from '../../faults/random.ts';
import { quietBot } from '../support/quiet-bot.ts';
import { remote, SessionBench } from '../support/session-bench.ts';

const frameBytes = 160;
const silent = silenceByte.PCMU;

function speaking() {
  const bench = new SessionBench();
  /** Number of packets sent by then. */
  const marks: { readonly name: string; readonly packets: number }[] = [];
  const queue = new PlayoutQueue(new PlayoutPool(100_000_000), (name) =>
    marks.push({ name, packets: bench.sent.length }),
  );
  bench.session.streaming.start(quietBot, queue);
  bench.session.applyRemote(remote, 'answer');
  return { bench, queue, marks };
}

const speech = (from: number, length: number) =>
  Uint8Array.from({ length }, (_, index) => (from + index) % 251);

type Packets = SessionBench['sent'];

/**
 * Asserts that sequence numbers have no gap, timestamps follow the clock, and a marker comes after
 * each time without packets, and nowhere else.
 */
function expectContinuous(sent: Packets): void {
  for (const [index, packet] of sent.entries()) {
    const before = sent[index - 1];
    if (before === undefined) {
      expect(packet.marker).toBe(true);
      continue;
    }
    expect(packet.sequence).toBe((before.sequence + 1) & 0xffff);
    const elapsed = (packet.timestamp - before.timestamp) >>> 0;
    expect(elapsed % frameBytes).toBe(0);
    expect(packet.marker).toBe(elapsed !== frameBytes);
  }
}

describe('the audio of a bot as RTP', () => {
  test('takes the place of silence, in one stream of numbers', () => {
    const { bench, queue } = speaking();
    bench.tick(2);
    queue.write(speech(0, 200));
    bench.tick(3);

    expect(
      bench.sent.map(({ payload }) => payload.filter((byte) => byte !== silent).length),
    ).toEqual([0, 0, 160, 40, 0]);
    expectContinuous(bench.sent);
  });

  test('is silent in the packet after a clear', () => {
    const { bench, queue } = speaking();
    queue.write(speech(0, 8_000));
    bench.tick(2);
    queue.clear();
    bench.tick(1);

    expect(new Set(bench.sent.at(-1)?.payload)).toEqual(new Set([silent]));
    expectContinuous(bench.sent);
  });

  test('waits for a late clock, and is not cut', () => {
    const { bench, queue } = speaking();
    const said = speech(0, 640);
    queue.write(said);
    bench.tick(2);
    for (let late = 0; late < 10; late += 1) bench.session.tick(false);
    bench.tick(2);

    expect(bench.sent.flatMap(({ payload }) => payload)).toEqual([...said]);
    expectContinuous(bench.sent);
  });

  test('returns its last mark after ten minutes exactly where the samples put it', () => {
    const { bench, queue, marks } = speaking();
    const chunk = 7_919;
    let written = 0;
    for (; written < 600 * 8_000 - chunk; written += chunk) queue.write(speech(written, chunk));
    queue.mark('last');
    bench.tick(30_010);

    expect(queue.statistics.bytesDropped).toBe(0);
    expect(marks).toEqual([{ name: 'last', packets: Math.ceil(written / frameBytes) }]);
  });

  test('does not drift: after ten minutes of late wake-ups, the last mark is within 20 ms', () => {
    const random = randomFrom(3);
    const bench = new SessionBench();
    let nowMs = 0;
    let markedAtMs = 0;
    const queue = new PlayoutQueue(new PlayoutPool(100_000_000), () => {
      markedAtMs = nowMs;
    });
    bench.session.streaming.start(quietBot, queue);
    bench.session.applyRemote(remote, 'answer');
    queue.write(new Uint8Array(599 * 8_000));
    queue.mark('last');
    const clock = new PlayoutClock(0);
    while (markedAtMs === 0) {
      // Delays are mostly a few milliseconds. Sometimes the thread stalls, at most for the time for
      // which missed packets are still sent.
      const lateMs = random.next() < 0.01 ? random.between(20, 60) : random.next() * 5;
      nowMs = Math.max(nowMs, clock.dueMs) + lateMs;
      clock.run(nowMs, (transmit) => bench.session.tick(transmit));
    }

    expect(bench.counts.unsent).toBe(0);
    // The first packet leaves with the first tick.
    expect(Math.abs(markedAtMs - 599 * 50 * 20)).toBeLessThanOrEqual(20);
  });

  test('matches a model in random runs of chunks, marks, clears, late ticks, holds and codecs', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 150, size: 'max' }), (steps) => {
        const { bench, queue, marks } = speaking();
        const model = createModel();
        saidBytes = 0;
        for (const next of steps) {
          doStep(next, { bench, queue });
          model[next.kind](next as never);
        }

        expect(bench.sent.map(({ payloadType, payload }) => ({ payloadType, payload }))).toEqual(
          model.sent,
        );
        expect(marks.map(({ packets }) => packets)).toEqual(model.marks);
        expectContinuous(bench.sent);
      }),
      { numRuns: 60 },
    );
  });
});

type Step =
  | { readonly kind: 'say'; readonly size: number }
  | { readonly kind: 'mark' | 'clear' }
  | { readonly kind: 'tick'; readonly inTime: boolean }
  | { readonly kind: 'offer'; readonly hold: boolean; readonly alaw: boolean };

let saidBytes = 0;

function doStep(next: Step, { bench, queue }: { bench: SessionBench; queue: PlayoutQueue }): void {
  switch (next.kind) {
    case 'say':
      queue.write(speech(saidBytes, next.size));
      saidBytes += next.size;
      break;
    case 'mark':
      queue.mark('m');
      break;
    case 'clear':
      queue.clear();
      break;
    case 'tick':
      bench.session.tick(next.inTime);
      break;
    case 'offer': {
      const codec = next.alaw ? 'PCMA' : 'PCMU';
      const payloadType = next.alaw ? 8 : 0;
      bench.session.applyRemote({ ...remote, weSend: !next.hold, codec, payloadType }, 'answer');
    }
  }
}

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('say' as const),
      size: fc.oneof(fc.integer({ min: 1, max: 500 }), fc.constantFrom(1, 13, 160, 9_000)),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('mark' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('clear' as const) }) },
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant('tick' as const),
      inTime: fc.integer({ min: 0, max: 5 }).map((one) => one > 0),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('offer' as const),
      hold: fc.boolean(),
      alaw: fc.boolean(),
    }),
  },
);

/** A model: a plain list of bytes and marks, without any optimisation. */
function createModel() {
  const items: (number | 'mark')[] = [];
  const sent: { payloadType: number; payload: number[] }[] = [];
  const marks: number[] = [];
  let hold = false;
  let alaw = false;
  const take = (): number[] => {
    const played: number[] = [];
    while (played.length < frameBytes && items.some((item) => item !== 'mark')) {
      const item = items.shift();
      if (item === 'mark') passed += 1;
      else if (item !== undefined) played.push(item);
    }
    return played;
  };
  let passed = 0;
  const returnMarks = () => {
    while (items[0] === 'mark') {
      items.shift();
      passed += 1;
    }
    for (; passed > 0; passed -= 1) marks.push(sent.length);
  };
  let written = 0;
  return {
    sent,
    marks,
    say({ size }: { readonly size: number }) {
      items.push(...speech(written, size));
      written += size;
    },
    mark() {
      items.push('mark');
      returnMarks();
    },
    clear() {
      passed += items.filter((item) => item === 'mark').length;
      items.length = 0;
      returnMarks();
    },
    offer(next: { readonly hold: boolean; readonly alaw: boolean }) {
      hold = next.hold;
      alaw = next.alaw;
    },
    tick({ inTime }: { readonly inTime: boolean }) {
      if (hold) take();
      else if (inTime) {
        const padded = [...take(), ...Array.from({ length: frameBytes }, () => silent)];
        const frame = padded.slice(0, frameBytes);
        const payload = alaw ? frame.map((byte) => mulawToAlaw[byte] ?? 0) : frame;
        sent.push({ payloadType: alaw ? 8 : 0, payload });
      }
      returnMarks();
    },
  };
}
