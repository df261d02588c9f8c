import { describe, expect, test } from 'vitest';
import { DtmfReceiver } from '../../../src/media/rtp/dtmf-receiver.ts';
import { seededRandom } from '../support/random.ts';

function receiver() {
  const presses: string[] = [];
  const dtmf = new DtmfReceiver((digit, durationMs) => presses.push(`${digit}:${durationMs}`));
  const receive = (event: number, timestamp: number, duration: number, end = false) => {
    const payload = [event, (end ? 0x80 : 0) | 10, duration >> 8, duration & 0xff];
    dtmf.receive(Uint8Array.from(payload), 0, 4, timestamp >>> 0);
  };
  const ticks = (count: number) => {
    for (let tick = 0; tick < count; tick += 1) dtmf.tick();
  };
  return { dtmf, presses, receive, ticks };
}

describe('telephone events', () => {
  test('reports a press once, at its end, with its whole duration', () => {
    const { presses, receive } = receiver();
    for (const duration of [160, 320, 480, 640]) receive(5, 1_000, duration);
    expect(presses).toEqual([]);
    for (let copy = 0; copy < 3; copy += 1) receive(5, 1_000, 800, true);

    expect(presses).toEqual(['5:100']);
  });

  test('reports all sixteen keys, and no other event', () => {
    const { presses, receive, ticks } = receiver();
    for (let event = 0; event <= 40; event += 1) {
      receive(event, 1_000 + event * 2_000, 800, true);
      ticks(5);
    }

    expect(presses.map((press) => press[0]).join('')).toBe('0123456789*#ABCD');
  });

  test('reports the same key twice as two presses', () => {
    const { presses, receive } = receiver();
    receive(1, 1_000, 400, true);
    receive(1, 2_600, 480, true);

    expect(presses).toEqual(['1:50', '1:60']);
  });

  test('reports a press whose end is lost when no more packets come', () => {
    const { presses, receive, ticks } = receiver();
    receive(9, 1_000, 160);
    receive(9, 1_000, 640);
    ticks(9);
    expect(presses).toEqual([]);
    ticks(1);
    receive(9, 1_000, 800, true);

    expect(presses).toEqual(['9:80']);
  });

  test('reports a press whose end is lost when the next key comes', () => {
    const { presses, receive } = receiver();
    receive(1, 1_000, 640);
    receive(2, 3_000, 160);
    receive(2, 3_000, 800, true);

    expect(presses).toEqual(['1:80', '2:100']);
  });

  test('reports a press of which only the end arrives', () => {
    const { presses, receive } = receiver();
    receive(11, 5_000, 960, true);

    expect(presses).toEqual(['#:120']);
  });

  test('neither shortens nor repeats a press whose packets are reordered', () => {
    const { presses, receive } = receiver();
    receive(3, 1_000, 320);
    receive(3, 1_000, 160);
    receive(3, 1_000, 640, true);
    receive(3, 1_000, 480);
    receive(4, 4_000, 160);
    receive(3, 1_000, 640, true);
    receive(4, 4_000, 640, true);

    expect(presses).toEqual(['3:80', '4:80']);
  });

  test('separates two presses between which the timestamp wraps', () => {
    const { presses, receive } = receiver();
    receive(1, 2 ** 32 - 500, 400, true);
    receive(2, 2 ** 32 + 800, 400, true);

    expect(presses).toEqual(['1:50', '2:50']);
  });

  test('reports a key that is held for longer than 8 s, in segments, as one press', () => {
    const { presses, receive } = receiver();
    receive(0, 1_000, 30_000);
    receive(0, 1_000, 65_535);
    receive(0, 1_000 + 65_535, 160);
    receive(0, 1_000 + 65_535, 8_001, true);

    expect(presses).toEqual(['0:9192']);
  });

  test('ignores the timestamps of the previous sender after a change of sender', () => {
    const { dtmf, presses, receive } = receiver();
    receive(1, 50_000, 400, true);
    dtmf.reset();
    receive(1, 49_000, 400, true);

    expect(presses).toEqual(['1:50', '1:50']);
  });

  test('limits a flood of forged presses to the speed of a hand', () => {
    const { presses, receive, ticks } = receiver();
    for (let press = 0; press < 1_000; press += 1) receive(7, press * 1_000, 400, true);
    expect(presses).toHaveLength(10);
    ticks(50);
    for (let press = 1_000; press < 2_000; press += 1) receive(7, press * 1_000, 400, true);

    expect(presses).toHaveLength(20);
  });

  test('ignores short and random payloads, and never throws', () => {
    const { dtmf } = receiver();
    const random = seededRandom(4_733);
    for (let round = 0; round < 5_000; round += 1) {
      const payload = Uint8Array.from({ length: Math.floor(random() * 8) }, () =>
        Math.floor(random() * 256),
      );
      dtmf.receive(payload, 0, payload.length, Math.floor(random() * 2 ** 32));
      dtmf.tick();
    }
  });
});
