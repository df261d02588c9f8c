import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { blockBytes, PlayoutPool } from '../../../src/media/playout/playout-pool.ts';
import { createPlayoutStatistics, PlayoutQueue } from '../../../src/media/playout/playout-queue.ts';

const frame = 160;

function queueOf(pool = new PlayoutPool(100 * blockBytes), maxBytes?: number) {
  const returned: string[] = [];
  const queue = new PlayoutQueue(
    pool,
    (name) => returned.push(name),
    createPlayoutStatistics(),
    maxBytes,
  );
  return { queue, returned };
}

/** A byte that identifies its position in the audio. */
const audio = (from: number, length: number) =>
  Uint8Array.from({ length }, (_, index) => (from + index) % 251);

function tick(queue: PlayoutQueue): number[] {
  const packet = new Uint8Array(frame);
  const count = queue.read(packet, 0, frame);
  queue.returnMarks();
  return [...packet.subarray(0, count)];
}

describe('playout queue', () => {
  test('cuts audio of any size into frames, and pads only when it runs dry', () => {
    const { queue } = queueOf();
    for (let from = 0; from < 330; from += 11) queue.write(audio(from, 11));

    expect([tick(queue), tick(queue), tick(queue), tick(queue)]).toEqual([
      [...audio(0, 160)],
      [...audio(160, 160)],
      [...audio(320, 10)],
      [],
    ]);
  });

  test('returns a mark when the last sample before it was played, and not earlier', () => {
    const { queue, returned } = queueOf();
    queue.write(audio(0, 161));
    queue.mark('end');
    tick(queue);
    expect(returned).toEqual([]);

    tick(queue);
    expect(returned).toEqual(['end']);
  });

  test('returns a mark at once if the queue is empty', () => {
    const { queue, returned } = queueOf();
    queue.mark('now');
    expect(returned).toEqual(['now']);
  });

  test('returns each of several marks with the same name', () => {
    const { queue, returned } = queueOf();
    queue.write(audio(0, 10));
    queue.mark('again');
    queue.mark('again');
    tick(queue);
    expect(returned).toEqual(['again', 'again']);
  });

  test('drops all audio on clear, and returns the marks in order', () => {
    const { queue, returned } = queueOf();
    queue.write(audio(0, 40_000));
    queue.mark('first');
    queue.write(audio(0, 1));
    queue.mark('second');
    queue.clear();

    expect(returned).toEqual(['first', 'second']);
    expect(tick(queue)).toEqual([]);
  });

  test('drops audio beyond its limit, the newest first', () => {
    const { queue } = queueOf(undefined, 1_000);
    expect(queue.write(audio(0, 900))).toBe(true);
    expect(queue.write(audio(900, 200))).toBe(false);

    expect(queue.queuedBytes).toBe(1_000);
    expect(queue.statistics.bytesDropped).toBe(100);
  });

  test('counts a pause in mid-speech as an underrun, and a longer one as the end of speech', () => {
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

  test('drops marks beyond its limit, and still returns those that it keeps', () => {
    const { queue, returned } = queueOf();
    queue.write(audio(0, 1));
    const taken = Array.from({ length: 10_001 }, (_, index) => queue.mark(String(index)));
    tick(queue);

    expect(taken.filter((isTaken) => !isTaken)).toHaveLength(1);
    expect(returned).toHaveLength(10_000);
  });

  test('plays what a model plays, in random sequences of chunks, marks, clears, ticks and holds', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200, size: 'max' }), (steps) => {
        const { queue, returned } = queueOf();
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
          expect(returned).toEqual(model.returned);
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

/** A model of the queue in its simplest form: a list of samples and marks. */
function createModel() {
  let items: (number | string)[] = [];
  /** Index of the next item. Items before it are done. */
  let next = 0;
  let queued = 0;
  const returned: string[] = [];
  const take = () => {
    next += 1;
    return items[next - 1];
  };
  const tellFirstMarks = () => {
    while (typeof items[next] === 'string') returned.push(take() as string);
  };
  return {
    written: 0,
    returned,
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
      returned.push(...items.slice(next).filter((item) => typeof item === 'string'));
      items = [];
      next = 0;
      queued = 0;
    },
    tick() {
      const played: number[] = [];
      while (played.length < frame && next < items.length) {
        const item = take();
        if (typeof item === 'number') played.push(item);
        else if (item !== undefined) returned.push(item);
      }
      queued -= played.length;
      tellFirstMarks();
      return played;
    },
  };
}

describe('the pool of a worker', () => {
  test('gives the newest second of the greediest queue to a queue that has less', () => {
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
    expect(greedy.returned).toEqual(['end']);
  });

  test('refuses more to the greediest queue, which takes no block of another queue', () => {
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
  ])('takes back audio that was %s', (_end, end) => {
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
