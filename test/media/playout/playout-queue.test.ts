import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { blockBytes, PlayoutPool } from '../../../src/media/playout/playout-pool.ts';
import { createPlayoutStatistics, PlayoutQueue } from '../../../src/media/playout/playout-queue.ts';

const frame = 160;

function queueOf(pool = new PlayoutPool(100 * blockBytes), maxBytes?: number) {
  const told: string[] = [];
  const queue = new PlayoutQueue(
    pool,
    (name) => told.push(name),
    createPlayoutStatistics(),
    maxBytes,
  );
  return { queue, told };
}

/** A byte that says where in the audio it stands. */
const audio = (from: number, length: number) =>
  Uint8Array.from({ length }, (_, index) => (from + index) % 251);

function tick(queue: PlayoutQueue): number[] {
  const packet = new Uint8Array(frame);
  const count = queue.read(packet, 0, frame);
  queue.returnMarks();
  return [...packet.subarray(0, count)];
}

describe('playout queue', () => {
  test('cuts what comes in any size into frames, and pads only where it ran dry', () => {
    const { queue } = queueOf();
    for (let from = 0; from < 330; from += 11) queue.write(audio(from, 11));

    expect([tick(queue), tick(queue), tick(queue), tick(queue)]).toEqual([
      [...audio(0, 160)],
      [...audio(160, 160)],
      [...audio(320, 10)],
      [],
    ]);
  });

  test('a mark comes back when the last sample before it was played, and not before', () => {
    const { queue, told } = queueOf();
    queue.write(audio(0, 161));
    queue.mark('end');
    tick(queue);
    expect(told).toEqual([]);

    tick(queue);
    expect(told).toEqual(['end']);
  });

  test('a mark on an empty queue comes back at once', () => {
    const { queue, told } = queueOf();
    queue.mark('now');
    expect(told).toEqual(['now']);
  });

  test('marks of one name are several marks', () => {
    const { queue, told } = queueOf();
    queue.write(audio(0, 10));
    queue.mark('again');
    queue.mark('again');
    tick(queue);
    expect(told).toEqual(['again', 'again']);
  });

  test('clear leaves nothing to play and returns the marks in order', () => {
    const { queue, told } = queueOf();
    queue.write(audio(0, 40_000));
    queue.mark('first');
    queue.write(audio(0, 1));
    queue.mark('second');
    queue.clear();

    expect(told).toEqual(['first', 'second']);
    expect(tick(queue)).toEqual([]);
  });

  test('what is beyond its bound is dropped, the newest first', () => {
    const { queue } = queueOf(undefined, 1_000);
    expect(queue.write(audio(0, 900))).toBe(true);
    expect(queue.write(audio(900, 200))).toBe(false);

    expect(queue.queuedBytes).toBe(1_000);
    expect(queue.statistics.bytesDropped).toBe(100);
  });

  test('a pause of the bot in mid-speech is an underrun, a longer one is the end of what it said', () => {
    const { queue } = queueOf();
    for (const pauseFrames of [3, 11]) {
      queue.write(audio(0, frame));
      tick(queue);
      for (let count = 0; count < pauseFrames; count += 1) tick(queue);
    }
    queue.write(audio(0, frame));
    tick(queue);

    expect(queue.statistics.underruns).toBe(1);
  });

  test('more marks than are kept are dropped, and those that are kept still come back', () => {
    const { queue, told } = queueOf();
    queue.write(audio(0, 1));
    const taken = Array.from({ length: 10_001 }, (_, index) => queue.mark(String(index)));
    tick(queue);

    expect(taken.filter((isTaken) => !isTaken)).toHaveLength(1);
    expect(told).toHaveLength(10_000);
  });

  test('plays what a model plays, however chunks, marks, clears, ticks and holds follow each other', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200, size: 'max' }), (steps) => {
        const { queue, told } = queueOf();
        const model = createModel();
        for (const { kind, size } of steps) {
          switch (kind) {
            case 'write':
              queue.write(audio(model.written, size));
              model.write(size);
              break;
            case 'mark':
              queue.mark(`m${size}`);
              model.mark(`m${size}`);
              break;
            case 'clear':
              queue.clear();
              model.clear();
              break;
            case 'tick':
              expect(tick(queue)).toEqual(model.tick());
              break;
          }
          expect(told).toEqual(model.told);
          expect(queue.queuedBytes).toBe(model.queued);
        }
      }),
      { numRuns: 30 },
    );
  });
});

const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('write' as const), size: chunkSize() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('mark' as const), size: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('clear' as const), size: fc.nat(0) }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('tick' as const), size: fc.nat(0) }) },
);

function chunkSize() {
  return fc.oneof(fc.integer({ min: 1, max: 400 }), fc.constantFrom(1, 13, 160, 7_999, 20_000));
}

/** The same in the plainest way: a list of samples and marks. */
function createModel() {
  let items: (number | string)[] = [];
  /** Of the next item: those before it are done with. */
  let next = 0;
  let queued = 0;
  const told: string[] = [];
  const take = () => {
    next += 1;
    return items[next - 1];
  };
  const tellFirstMarks = () => {
    while (typeof items[next] === 'string') told.push(take() as string);
  };
  return {
    written: 0,
    told,
    get queued() {
      return queued;
    },
    write(size: number) {
      items.push(...audio(this.written, size));
      this.written += size;
      queued += size;
    },
    mark(name: string) {
      items.push(name);
      tellFirstMarks();
    },
    clear() {
      told.push(...items.slice(next).filter((item) => typeof item === 'string'));
      items = [];
      next = 0;
      queued = 0;
    },
    tick() {
      const played: number[] = [];
      while (played.length < frame && next < items.length) {
        const item = take();
        if (typeof item === 'number') played.push(item);
        else if (item !== undefined) told.push(item);
      }
      queued -= played.length;
      tellFirstMarks();
      return played;
    },
  };
}

describe('what all calls of a worker may keep', () => {
  test('the newest second of the greediest gives way to who has less', () => {
    const pool = new PlayoutPool(4 * blockBytes);
    const greedy = queueOf(pool);
    const modest = queueOf(pool);
    greedy.queue.write(audio(0, 4 * blockBytes));
    greedy.queue.mark('end');
    expect(modest.queue.write(audio(0, frame))).toBe(true);

    expect(pool.heldBytes).toBe(4 * blockBytes);
    expect(greedy.queue.queuedBytes).toBe(3 * blockBytes);
    expect(greedy.queue.statistics.bytesDropped).toBe(blockBytes);
    const played: number[] = [];
    while (greedy.queue.queuedBytes > 0) played.push(...tick(greedy.queue));
    expect(played).toEqual([...audio(0, 3 * blockBytes)]);
    expect(greedy.told).toEqual(['end']);
  });

  test('the greediest is refused more, and takes no other a second', () => {
    const pool = new PlayoutPool(3 * blockBytes);
    const modest = queueOf(pool);
    const greedy = queueOf(pool);
    modest.queue.write(audio(0, blockBytes));
    greedy.queue.write(audio(0, 3 * blockBytes));

    expect(greedy.queue.queuedBytes).toBe(2 * blockBytes);
    expect(modest.queue.queuedBytes).toBe(blockBytes);
  });

  test.each<[string, (queue: PlayoutQueue) => void]>([
    ['played', playAll],
    ['cleared', (queue) => queue.clear()],
    ['closed', (queue) => queue.close()],
  ])('what was %s is free again', (_end, end) => {
    const pool = new PlayoutPool(10 * blockBytes);
    const { queue } = queueOf(pool);
    queue.write(audio(0, 2 * blockBytes + 7));
    end(queue);

    expect(pool.heldBytes).toBe(0);
  });
});

function playAll(queue: PlayoutQueue): void {
  while (queue.queuedBytes > 0) tick(queue);
}
