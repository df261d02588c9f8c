// Sounds that a call plays between the audio of its bot: their order, reports of what was sent,
// loops, stops and holds.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Playback } from '../../../src/calls/playback/playback.ts';
import { PlayoutPool } from '../../../src/media/playout/playout-pool.ts';
import { PlayoutQueue } from '../../../src/media/playout/playout-queue.ts';
import { SoundPlayer } from '../../../src/media/playout/sound-player.ts';
import { testSound } from '../../support/test-sound.ts';
import { remote, SessionBench } from '../support/session-bench.ts';

const frameBytes = 160;

function sound(name: string, length: number, from = 0): Playback {
  const mulaw = Uint8Array.from({ length }, (_, index) => (from + index) % 251);
  return {
    playbackId: name,
    source: 'command',
    sound: testSound(`sound:${name}`, mulaw),
  };
}

function answered(): SessionBench {
  const bench = new SessionBench();
  bench.session.applyRemote(remote, 'answer');
  return bench;
}

const said = (bench: SessionBench) => bench.sent.flatMap(({ payload }) => payload);
const reportsOf = ({ playbacks }: SessionBench) =>
  playbacks.map((report) =>
    report.kind === 'started'
      ? `${report.playbackId} started`
      : `${report.playbackId} ${report.reason} ${report.playedMs}`,
  );

describe('a sound', () => {
  test('is sent from its first sample to its last, and is reported', () => {
    const bench = answered();
    const hello = sound('hello', 400);
    bench.session.execute({ kind: 'play', playback: hello });
    bench.tick(1);
    expect(reportsOf(bench)).toEqual(['hello started']);
    bench.tick(3);

    expect(said(bench).slice(0, 400)).toEqual([...hello.sound.mulaw]);
    expect(new Set(said(bench).slice(400))).toEqual(new Set([0xff]));
    expect(reportsOf(bench)).toEqual(['hello started', 'hello done 50']);
  });

  test('waits for the answer', () => {
    const bench = new SessionBench();
    bench.session.applyRemote(remote, 'early');
    bench.session.execute({ kind: 'play', playback: sound('hello', 160) });
    bench.tick(5);
    expect(bench.playbacks).toEqual([]);
    bench.session.applyRemote(remote, 'answer');
    bench.tick(1);

    expect(reportsOf(bench)).toEqual(['hello started', 'hello done 20']);
  });

  test('waits on hold, and while the clock is late', () => {
    const bench = answered();
    const hello = sound('hello', 640);
    bench.session.execute({ kind: 'play', playback: hello });
    bench.tick(1);
    bench.session.applyRemote({ ...remote, weSend: false }, 'answer');
    bench.tick(20);
    bench.session.applyRemote(remote, 'answer');
    bench.session.tick(false);
    bench.tick(3);

    expect(said(bench)).toEqual([...hello.sound.mulaw]);
  });

  test('is repeated if it loops, until another sound is played', () => {
    const bench = answered();
    bench.session.execute({ kind: 'play', playback: { ...sound('music', 200), loop: true } });
    bench.tick(5);
    expect(said(bench).slice(200, 400)).toEqual(said(bench).slice(0, 200));
    bench.session.execute({ kind: 'play', playback: sound('hello', 160, 7) });
    bench.tick(1);

    expect(said(bench).slice(800)).toEqual([...sound('hello', 160, 7).sound.mulaw]);
    expect(reportsOf(bench)).toEqual([
      'music started',
      'music stopped 100',
      'hello started',
      'hello done 20',
    ]);
  });

  test('is stopped together with the sounds that wait behind it', () => {
    const bench = answered();
    bench.session.execute({ kind: 'play', playback: sound('one', 8_000) });
    bench.session.execute({ kind: 'play', playback: sound('two', 8_000) });
    bench.tick(2);
    bench.session.stopPlayback();
    bench.tick(1);

    expect(reportsOf(bench)).toEqual(['one started', 'one stopped 40', 'two stopped 0']);
    expect(new Set(bench.sent.at(-1)?.payload)).toEqual(new Set([0xff]));
  });

  test('plays on if it is the notice before a recording, unless the call ends', () => {
    const bench = answered();
    const notice = { ...sound('notice', 480, 9), source: 'recording' } as const;
    bench.session.execute({ kind: 'play', playback: notice });
    bench.session.execute({ kind: 'play', playback: sound('one', 8_000) });
    bench.tick(1);
    bench.session.execute({ kind: 'stopPlayback' });
    bench.tick(2);
    bench.session.execute({ kind: 'play', playback: notice });
    bench.tick(1);
    bench.session.execute({ kind: 'stopPlayback', isEnd: true });

    expect(said(bench).slice(0, 480)).toEqual([...notice.sound.mulaw]);
    expect(reportsOf(bench)).toEqual([
      ...['notice started', 'one stopped 0', 'notice done 60'],
      ...['notice started', 'notice stopped 20'],
    ]);
  });

  test('fails if it has no samples, or if a hundred sounds wait already', () => {
    const bench = answered();
    bench.session.execute({ kind: 'play', playback: sound('nothing', 0) });
    for (let count = 0; count < 101; count += 1)
      bench.session.execute({ kind: 'play', playback: sound('a', 80) });

    expect(reportsOf(bench)).toEqual(['nothing failed 0', 'a failed 0']);
  });
});

type Step =
  | { readonly kind: 'say' | 'play'; readonly size: number }
  /** `replace`: another bot gets the call. */
  | { readonly kind: 'clear' | 'stop' | 'pass' | 'replace' }
  | { readonly kind: 'read'; readonly size: number };

const step = fc.oneof<fc.Arbitrary<Step>[]>(
  fc.record({ kind: fc.constantFrom('say', 'play'), size: fc.integer({ min: 1, max: 900 }) }),
  fc.record({ kind: fc.constantFrom('clear', 'stop', 'pass', 'replace') }),
  fc.record({ kind: fc.constant('read'), size: fc.integer({ min: 1, max: 160 }) }),
);

/** A model of the player: a plain list of items, without any optimisation. */
class Model {
  readonly finished: number[] = [];
  items: { readonly isBots: boolean; left: readonly number[]; played: number }[] = [];

  add(isBots: boolean, bytes: readonly number[]): void {
    this.items.push({ isBots, left: bytes, played: 0 });
  }

  take(count: number, isOnHold = false): readonly number[] {
    const [first] = this.items;
    if (first === undefined || count === 0 || (isOnHold && !first.isBots)) return [];
    const taken = first.left.slice(0, count);
    first.left = first.left.slice(taken.length);
    first.played += taken.length;
    if (first.left.length === 0) this.#finish(first);
    return [...taken, ...this.take(count - taken.length, isOnHold)];
  }

  drop(isBots: boolean): void {
    for (const item of this.items.filter((one) => one.isBots === isBots)) this.#finish(item);
  }

  #finish(item: Model['items'][number]): void {
    this.items = this.items.filter((one) => one !== item);
    if (!item.isBots) this.finished.push(Math.round(item.played / 8));
  }
}

/** Runs the player and its model side by side. */
class Pair {
  readonly model = new Model();
  readonly finished: number[] = [];
  readonly #pool = new PlayoutPool(100_000_000);
  #queue = new PlayoutQueue(this.#pool, () => undefined);
  readonly #player = new SoundPlayer((report) => {
    if (report.kind === 'finished') this.finished.push(report.playedMs);
  });
  #written = 0;
  #names = 0;

  constructor() {
    this.#player.attach(this.#queue);
  }

  do(next: Step): void {
    if (next.kind === 'say') this.#say(next.size);
    else if (next.kind === 'play') this.#play(next.size);
    else if (next.kind === 'read') this.#read(next.size);
    else if (next.kind === 'pass') {
      this.#player.skipFrame();
      this.model.take(frameBytes, true);
    } else {
      if (next.kind === 'clear') this.#queue.clear();
      else if (next.kind === 'stop') this.#player.stop(true);
      else this.#replaceBot();
      this.model.drop(next.kind !== 'stop');
    }
    expect(this.#player.isPlaying).toBe(this.model.items.some(({ isBots }) => !isBots));
  }

  #replaceBot(): void {
    this.#queue.close();
    this.#player.attach(undefined);
    this.#queue = new PlayoutQueue(this.#pool, () => undefined);
    this.#player.attach(this.#queue);
  }

  #say(size: number): void {
    const bytes = Array.from({ length: size }, (_, index) => (this.#written + index) % 200);
    this.#written += size;
    this.#queue.write(Uint8Array.from(bytes));
    this.model.add(true, bytes);
  }

  #play(size: number): void {
    this.#names += 1;
    const playback = sound(String(this.#names), size, this.#names);
    this.#player.play(playback);
    this.model.add(false, [...playback.sound.mulaw]);
  }

  #read(size: number): void {
    const packet = new Uint8Array(frameBytes);
    const count = this.#player.read(packet, 0, size);
    expect([...packet.subarray(0, count)]).toEqual(this.model.take(size));
  }
}

test('plays sounds and a bot in the order of their arrival, in random sequences of clears and stops', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120, size: 'max' }), (steps) => {
      const pair = new Pair();
      for (const next of steps) pair.do(next);
      expect(pair.finished).toEqual(pair.model.finished);
    }),
    { numRuns: 200 },
  );
});
