import { describe, expect, test } from 'vitest';
import { decodeTable, encodeMulaw } from '../../../src/media/g711.ts';
import {
  createJitterStatistics,
  createPlayoutCounts,
  JitterBuffer,
  missingSample,
  pausedSample,
} from '../../../src/media/rtp/jitter-buffer.ts';
import { createRtpHeader } from '../../../src/media/rtp/rtp-packet.ts';
import { seededRandom } from '../support/random.ts';

/** A sender that gives each 20 ms its own level, so that a test can see which one is played. */
class Line {
  readonly counts = createPlayoutCounts();
  readonly buffer = new JitterBuffer(createJitterStatistics(), this.counts);
  sequence = 100;
  timestamp = 1_000;

  /** Sends `samples` of level number `level` (1, 2, …), and advances the sender's counters. */
  packet(
    level: number | ((index: number) => number),
    samples = 160,
    { marker = false } = {},
  ): () => void {
    const levelAt = typeof level === 'number' ? () => level : level;
    const bytes = Uint8Array.from({ length: samples }, (_, index) =>
      encodeMulaw(levelAt(index) * 1_000),
    );
    const { sequence, timestamp } = this;
    this.sequence = (sequence + 1) & 0xffff;
    this.timestamp = (timestamp + samples) >>> 0;
    const header = { ...createRtpHeader(), marker, sequence, timestamp, payloadEnd: samples };
    return () => this.buffer.put(bytes, header, decodeTable.PCMU);
  }

  /** Sends comfort noise, from the current timestamp on. */
  sendNoise(): void {
    const { sequence, timestamp } = this;
    this.sequence = (sequence + 1) & 0xffff;
    this.buffer.pause({ ...createRtpHeader(), sequence, timestamp });
  }

  send(level: number, samples = 160): void {
    this.packet(level, samples)();
  }

  /** Returns the level with which the next 20 ms begin, `-` if it's missing, `~` in a pause. */
  hear(): string {
    const frame = new Int16Array(160).fill(99);
    const received = this.buffer.take(frame);
    const [first = 0] = frame;
    if (first === missingSample) return '-';
    const level = first === pausedSample ? '~' : String(Math.round(first / 1_000));
    return received ? level : `${level}?`;
  }

  /** Milliseconds that were lost or late. */
  get concealedMs(): number {
    return this.counts.concealedSamples / 8;
  }

  hearMany(count: number): string {
    return Array.from({ length: count }, () => this.hear()).join(' ');
  }
}

/** Sends level n and takes a frame, for each n in from..to. */
function exchange(line: Line, from: number, to: number): string {
  const heard: string[] = [];
  for (let level = from; level <= to; level += 1) {
    line.send(level);
    heard.push(line.hear());
  }
  return heard.join(' ');
}

describe('jitter buffer', () => {
  test('plays silence and reports it as lost if nothing was received', () => {
    expect(new Line().hearMany(3)).toBe('- - -');
  });

  test.each([10, 20, 30, 40, 60, 100, 150, 200, 260, 400])(
    'plays packets of %i ms whole',
    (packetMs) => {
      const line = new Line();
      const frames: string[] = [];
      for (let sentMs = 0, nowMs = 0; nowMs < 3_000; nowMs += 20) {
        for (; sentMs <= nowMs; sentMs += packetMs) {
          const first = sentMs;
          line.packet((index) => 1 + (Math.floor((first + index / 8) / 20) % 9), packetMs * 8)();
        }
        frames.push(line.hear());
      }

      expect(frames.slice(0, 2)).toEqual(['-', '-']);
      expect(frames.slice(2)).toEqual(frames.slice(2).map((_, index) => String(1 + (index % 9))));
    },
  );

  test('plays in order after 40 ms', () => {
    const line = new Line();

    expect(exchange(line, 1, 6)).toBe('- - 1 2 3 4');
  });

  test('plays 20 ms of silence for a lost packet', () => {
    const line = new Line();
    exchange(line, 1, 3);
    line.packet(4);

    expect(line.hear()).toBe('2');
    expect(exchange(line, 5, 8)).toBe('3 - 5 6');
  });

  test('reorders packets', () => {
    const line = new Line();
    const first = line.packet(1);
    const second = line.packet(2);
    const third = line.packet(3);
    first();
    third();
    second();

    expect(line.hearMany(5)).toBe('- - 1 2 3');
  });

  test('ignores a duplicate, however late it comes', () => {
    const line = new Line();
    const first = line.packet(1);
    first();
    first();
    const heard = [line.hear(), line.hear(), line.hear()];
    first();
    line.send(2);

    expect([...heard, line.hear()].join(' ')).toBe('- - 1 2');
    expect(line.buffer.statistics.duplicates).toBe(2);
  });

  test('drops a straggler whose time is over', () => {
    const line = new Line();
    exchange(line, 1, 4);
    const straggler = line.packet(5);
    exchange(line, 6, 9);
    straggler();

    expect(exchange(line, 10, 12)).toBe('7 8 9');
    expect(line.buffer.statistics.late).toBe(1);
  });

  test('plays across the wrap of sequence numbers and timestamps', () => {
    const line = new Line();
    line.sequence = 65_534;
    line.timestamp = 2 ** 32 - 320;

    expect(exchange(line, 1, 8)).toBe('- - 1 2 3 4 5 6');
  });

  test.each([10, 30, 40, 60, 100])('plays packets of %i ms unchanged', (ptimeMs) => {
    const line = new Line();
    const samples = ptimeMs * 8;
    let sentMs = 0;
    const heard: string[] = [];
    for (let nowMs = 0; nowMs < 600; nowMs += 20) {
      while (sentMs <= nowMs) {
        const startMs = sentMs;
        line.packet((index) => 1 + Math.floor((startMs + index / 8) / 100), samples)();
        sentMs += ptimeMs;
      }
      heard.push(line.hear());
    }

    // 40 ms of delay, then the frames of each 100 ms (28 frames in all).
    const expected = Array.from({ length: 28 }, (_, index) => String(1 + Math.floor(index / 5)));
    expect(heard.slice(2)).toEqual(expected);
  });

  test('keeps a pause without packets (silence suppression) as long as its timestamps say', () => {
    const line = new Line();
    exchange(line, 1, 4);
    line.timestamp += 160 * 500;

    expect(line.hearMany(500).startsWith('3 4 - -')).toBe(true);
    expect(exchange(line, 5, 8)).toBe('~ ~ 5 6');
  });

  test('plays a sender that stops its timestamp in a pause from its next packet on', () => {
    const line = new Line();
    exchange(line, 1, 4);
    line.hearMany(20);

    expect(exchange(line, 5, 8)).toBe('5 6 7 8');
  });

  test('keeps the audio before a pause that a stall of the network held up, and the pause', () => {
    const line = new Line();
    expect(exchange(line, 1, 3)).toBe('- - 1');
    line.send(4);
    line.timestamp += 20 * 160;
    line.send(5);

    expect(line.hearMany(25)).toBe(['2 3 4', ...Array<string>(20).fill('~'), '5 -'].join(' '));
  });

  test('loses nothing after a stall of the network, and shortens the delay again', () => {
    const line = new Line();
    exchange(line, 1, 4);
    const held = [5, 6, 7, 8, 9, 10].map((level) => line.packet(level));
    const during = line.hearMany(6);
    for (const release of held) release();

    expect(during).toBe('3 4 - - - -');
    expect(exchange(line, 11, 16)).toBe('5 6 7 8 9 10');
    // After some quiet seconds the delay is as long as at the beginning, plus or minus a frame.
    for (let count = 0; count < 1_000; count += 1) {
      line.send(0);
      line.hear();
    }
    expect(line.buffer.statistics.skippedFrames).toBeGreaterThanOrEqual(2);
    expect(exchange(line, 21, 26)).toMatch(/^0 (0 )?(0 )?21 22 23/);
  });

  test.each([20, 260])('cuts no packet of %i ms that a stall of 520 ms held up', (packetMs) => {
    const line = new Line();
    let level = 0;
    const packet = () => {
      const first = level;
      level += packetMs / 20;
      return line.packet((index) => 1 + ((first + Math.floor(index / 160)) % 30), packetMs * 8);
    };
    for (let count = 0; count < 520 / packetMs; count += 1) packet()();
    const before = line.hearMany(28);
    const held = Array.from({ length: 520 / packetMs }, packet);
    const during = line.hearMany(26);
    for (const release of held) release();

    const numbers = (from: number, to: number) =>
      Array.from({ length: to - from + 1 }, (_, index) => 1 + ((from + index) % 30)).join(' ');
    expect(before).toBe(`- - ${numbers(0, 25)}`);
    expect(during.replaceAll(/[- ]/g, '')).toBe('');
    expect(line.hearMany(26)).toBe(numbers(26, 51));
    expect(line.counts.unplayedPackets).toBe(0);
  });

  test('plays packets of 260 ms whole if two come at once', () => {
    const line = new Line();
    line.packet((index) => 1 + Math.floor(index / 160), 2_080)();
    line.packet((index) => 14 + Math.floor(index / 160), 2_080)();

    const levels = Array.from({ length: 26 }, (_, index) => index + 1);
    expect(line.hearMany(28)).toBe(`- - ${levels.join(' ')}`);
  });

  test('shortens the delay in pauses first, as fast as they allow', () => {
    const line = new Line();
    exchange(line, 1, 4);
    const held = Array.from({ length: 20 }, () => line.packet(5));
    line.hearMany(20);
    for (const release of held) release();
    for (let count = 0; count < 60; count += 1) {
      line.send(5);
      line.hear();
    }
    const { skippedFrames } = line.buffer.statistics;
    expect(skippedFrames).toBeLessThanOrEqual(1);
    for (let count = 0; count < 60; count += 1) {
      line.send(0);
      line.hear();
    }

    expect(delayInFrames(line)).toBeLessThanOrEqual(4);
  });

  test('shortens a delay that grew to its limit, even in loud speech', () => {
    const line = new Line();
    exchange(line, 1, 4);
    const held = Array.from({ length: 40 }, () => line.packet(5));
    line.hearMany(40);
    for (const release of held) release();
    expect(delayInFrames(line)).toBeGreaterThanOrEqual(29);
    for (let count = 0; count < 3_000; count += 1) {
      line.send(5);
      line.hear();
    }

    expect(delayInFrames(line)).toBeLessThanOrEqual(4);
  });

  test('limits the delay if the sender is faster than our clock', () => {
    const line = new Line();
    let owed = 0;
    for (let frame = 0; frame < 20_000; frame += 1) {
      owed += 1.001;
      for (; owed >= 1; owed -= 1) line.send(0);
      line.hear();
    }

    expect(line.buffer.statistics.skippedFrames).toBeGreaterThanOrEqual(15);
    expect(delayInFrames(line)).toBeLessThanOrEqual(4);
  });

  test('inserts an occasional frame of silence, and loses no packet, if the sender is slower', () => {
    const line = new Line();
    let owed = 0;
    let missed = 0;
    for (let frame = 0; frame < 20_000; frame += 1) {
      owed += 0.999;
      for (; owed >= 1; owed -= 1) line.send(5);
      if (line.hear() === '-') missed += 1;
    }

    expect(missed).toBeGreaterThanOrEqual(18);
    expect(missed).toBeLessThanOrEqual(24);
    expect(line.buffer.statistics.late).toBe(0);
  });

  test('cuts a burst of a whole second to the longest delay', () => {
    const line = new Line();
    for (let packet = 1; packet <= 50; packet += 1) line.send(packet % 32);

    // The newest packet begins 600 ms ahead. Level 32 is 0 again.
    const played = Array.from({ length: 31 }, (_, index) => (index + 20) % 32);
    expect(line.hearMany(31)).toBe(played.join(' '));
    // The 40 ms before the first packet were skipped, too.
    expect(line.counts.unplayedPackets).toBe(19);
  });

  test('ignores one stray timestamp, and follows two in a row', () => {
    const line = new Line();
    exchange(line, 1, 4);
    const { timestamp } = line;
    line.timestamp = (timestamp + 3_000_000_000) >>> 0;
    line.send(30);
    line.timestamp = timestamp;

    expect(exchange(line, 5, 6)).toBe('3 4');
    line.timestamp = (timestamp + 5_000_000) >>> 0;
    line.send(7);
    expect(exchange(line, 8, 12)).toBe('- - 8 9 10');
  });

  test('accepts a sequence that restarts', () => {
    const line = new Line();
    exchange(line, 1, 4);
    line.sequence = 40_000;

    expect(exchange(line, 5, 8)).toBe('3 4 5 6');
    line.sequence = 10;
    expect(exchange(line, 9, 12)).toBe('7 8 9 10');
  });

  test('forgets waiting audio on reset', () => {
    const line = new Line();
    exchange(line, 1, 5);
    line.buffer.reset();

    expect(line.hearMany(2)).toBe('- -');
    expect(exchange(line, 6, 9)).toBe('- - 6 7');
  });

  test('counts a frame as received if at least half of it is there', () => {
    const line = new Line();
    line.send(1, 80);
    line.timestamp += 80;
    line.send(2, 72);
    line.timestamp += 88;

    expect(line.hearMany(4)).toBe('- - 1 2?');
  });

  test('ignores an empty or absurdly long payload', () => {
    const line = new Line();
    line.send(1, 0);
    line.send(2, 4_000);

    expect(line.hearMany(3)).toBe('- - -');
  });
});

describe('what the listeners of a jitter buffer miss', () => {
  test('is nothing before the first packet, or after the last', () => {
    const line = new Line();
    line.hearMany(10);
    exchange(line, 1, 10);
    line.hearMany(100);

    expect(line.counts).toMatchObject({ concealedSamples: 0, unplayedPackets: 0 });
  });

  test('is each lost packet', () => {
    const line = new Line();
    exchange(line, 1, 5);
    line.packet(6);
    line.hear();
    exchange(line, 7, 20);

    expect(line.concealedMs).toBe(20);
    expect(line.counts.unplayedPackets).toBe(0);
  });

  test.each([3, 10, 100, 500])('is %i packets that were lost in a row', (count) => {
    const line = new Line();
    exchange(line, 1, 5);
    for (let index = 0; index < count; index += 1) {
      line.packet(1);
      line.hear();
    }
    exchange(line, 7, 20);

    expect(line.concealedMs).toBe(20 * count);
  });

  test.each([30, 60, 260])('is a lost packet of %i ms', (packetMs) => {
    const line = new Line();
    let sentMs = 0;
    for (let nowMs = 0; nowMs < 5_000; nowMs += 20) {
      for (; sentMs <= nowMs; sentMs += packetMs) {
        const send = line.packet(5, packetMs * 8);
        if (sentMs / packetMs !== 4) send();
      }
      line.hear();
    }

    expect(line.concealedMs).toBe(packetMs);
  });

  test('is not a pause of the far end, which leaves no gap in the sequence numbers', () => {
    const line = new Line();
    exchange(line, 1, 5);
    line.timestamp += 160 * 30;
    line.hearMany(30);
    line.packet(6, 160, { marker: true })();

    expect(exchange(line, 7, 10)).toBe('~ ~ 6 7');
    expect(line.concealedMs).toBe(0);
  });

  test('is not a pause that is shorter than the delay', () => {
    const line = new Line();
    exchange(line, 1, 5);
    line.timestamp += 160;
    line.hear();

    expect(exchange(line, 6, 10)).toBe('5 ~ 6 7 8');
    expect(line.concealedMs).toBe(0);
  });

  test('is the lost packets, and not the pause, if both come together', () => {
    const line = new Line();
    exchange(line, 1, 5);
    line.packet(6);
    line.packet(7);
    line.timestamp += 160 * 30;
    line.hearMany(32);
    exchange(line, 8, 12);

    expect(line.concealedMs).toBe(40);
  });

  test('is not the time of a key, whose packets replace the audio', () => {
    const line = new Line();
    exchange(line, 1, 5);
    for (let packet = 0; packet < 10; packet += 1) {
      line.buffer.note(line.sequence);
      line.sequence += 1;
      line.timestamp += 160;
      line.hear();
    }
    exchange(line, 6, 10);

    expect(line.concealedMs).toBe(0);
  });

  test('is not comfort noise', () => {
    const line = new Line();
    exchange(line, 1, 5);
    line.sendNoise();
    const heard = line.hearMany(30);
    line.timestamp += 160 * 30;
    exchange(line, 6, 10);

    expect(heard).toMatch(/^4 5( ~){28}$/);
    expect(line.concealedMs).toBe(0);
  });

  test('is the packet that was lost before comfort noise', () => {
    const line = new Line();
    exchange(line, 1, 5);
    line.packet(6);
    line.sendNoise();

    expect(line.hearMany(5)).toBe('4 5 - ~ ~');
    expect(line.concealedMs).toBe(20);
  });

  test('is the wait for packets that a stall held up, although they are played', () => {
    const line = new Line();
    exchange(line, 1, 4);
    const held = [5, 6, 7, 8, 9, 10].map((level) => line.packet(level));
    line.hearMany(6);
    for (const release of held) release();
    exchange(line, 11, 20);

    expect(line.counts).toMatchObject({ concealedSamples: 4 * 160, unplayedPackets: 0 });
  });

  test('is not the wait of a sender that stops its timestamp in a pause, and marks its end', () => {
    const line = new Line();
    exchange(line, 1, 4);
    line.hearMany(20);
    line.packet(5, 160, { marker: true })();

    expect(exchange(line, 6, 9)).toBe('5 6 7 8');
    expect(line.concealedMs).toBe(0);
  });

  test('is a packet that comes too late, once', () => {
    const line = new Line();
    exchange(line, 1, 4);
    const straggler = line.packet(5);
    exchange(line, 6, 9);
    straggler();
    straggler();

    expect(line.counts).toMatchObject({ concealedSamples: 160, unplayedPackets: 1 });
  });

  test('is not a packet that comes out of order, but in time', () => {
    const line = new Line();
    exchange(line, 1, 4);
    const straggler = line.packet(5);
    line.send(6);
    straggler();
    line.hear();
    exchange(line, 7, 9);

    expect(line.counts).toMatchObject({ concealedSamples: 0, unplayedPackets: 0 });
  });

  test('is not a duplicate', () => {
    const line = new Line();
    const first = line.packet(1);
    first();
    exchange(line, 2, 9);
    first();

    expect(line.counts).toMatchObject({ concealedSamples: 0, unplayedPackets: 0 });
  });

  test('never exceeds the time that has passed, whatever arrives', () => {
    const random = seededRandom(27);
    const below = (limit: number) => Math.floor(random() * limit);
    const line = new Line();
    const disturbances: readonly (() => void)[] = [
      () => Object.assign(line, { sequence: below(65_536) }),
      () => Object.assign(line, { timestamp: below(2 ** 32) }),
      () => Object.assign(line, { timestamp: (line.timestamp + below(4_000)) >>> 0 }),
      () => line.sendNoise(),
      () => line.buffer.note(below(65_536)),
      () => undefined,
    ];
    for (let frame = 1; frame <= 20_000; frame += 1) {
      const send = line.packet(1 + (frame % 20), 8 * below(60));
      const disturb = disturbances[below(12)] ?? send;
      disturb();
      line.hear();
      expect(line.concealedMs).toBeLessThanOrEqual(20 * frame);
    }
  });
});

/** Returns how many frames pass until a level that is sent now is played. */
function delayInFrames(line: Line): number {
  line.send(30);
  for (let frames = 0; frames < 100; frames += 1) {
    const heard = line.hear();
    line.send(0);
    if (heard === '30') return frames;
  }
  return 100;
}
