// Keys as RTP events, packet by packet (RFC 4733, section 2.5.1), between audio in the same stream.

import { describe, expect, test } from 'vitest';
import { DtmfReceiver } from '../../../src/media/rtp/dtmf-receiver.ts';
import { testSound } from '../../support/test-sound.ts';
import { remote, SessionBench } from '../support/session-bench.ts';

function answered(more: Partial<typeof remote> = {}): SessionBench {
  const bench = new SessionBench();
  bench.session.applyRemote({ ...remote, keyPayloadType: 96, ...more }, 'answer');
  return bench;
}

const press = (bench: SessionBench, digits: string, durationMs = 100) =>
  bench.session.execute({ kind: 'press', keys: { commandId: 'menu', digits, durationMs } });

type Sent = SessionBench['sent'][number];
const events = ({ sent }: SessionBench) => sent.filter(({ payloadType }) => payloadType === 96);
const durationOf = ({ payload }: Sent) => ((payload[2] ?? 0) << 8) | (payload[3] ?? 0);
const isEnd = ({ payload }: Sent) => ((payload[1] ?? 0) & 0x80) !== 0;

/**
 * Asserts that sequence numbers are consecutive and that no timestamp is before the end of what was
 * sent.
 */
function expectOneStream({ sent }: SessionBench): void {
  const first = sent[0]?.sequence ?? 0;
  expect(sent.map(({ sequence }) => sequence)).toEqual(
    sent.map((_, index) => (first + index) & 0xffff),
  );
  let end = 0;
  const start = sent[0]?.timestamp ?? 0;
  for (const packet of sent) {
    const at = (packet.timestamp - start) >>> 0;
    const isEvent = packet.payloadType === 96;
    if (!isEvent) expect(at).toBeGreaterThanOrEqual(end);
    end = Math.max(end, at + (isEvent ? durationOf(packet) : 160));
  }
}

function heard({ sent }: SessionBench): readonly string[] {
  const keys: string[] = [];
  const receiver = new DtmfReceiver((digit, durationMs) => keys.push(`${digit} ${durationMs}`));
  for (const { payloadType, payload, timestamp } of sent) {
    if (payloadType === 96) receiver.receive(Uint8Array.from(payload), 0, 4, timestamp);
    receiver.tick();
  }
  return keys;
}

describe('a key', () => {
  test('is one event: a marker, one timestamp, a growing duration, three end packets', () => {
    const bench = answered();
    bench.tick(2);
    press(bench, '5');
    bench.tick(10);

    expect(bench.sent.map(({ payloadType }) => payloadType)).toEqual([
      ...[0, 0],
      ...[96, 96, 96, 96, 96, 96, 96],
      ...[0, 0, 0],
    ]);
    const key = events(bench);
    expect(key.map(({ marker }) => marker)).toEqual([true, ...Array(6).fill(false)]);
    expect(new Set(key.map(({ timestamp }) => timestamp))).toEqual(
      new Set([((bench.sent[1]?.timestamp ?? 0) + 160) >>> 0]),
    );
    expect(key.map(durationOf)).toEqual([160, 320, 480, 640, 800, 800, 800]);
    expect(key.map(isEnd)).toEqual([false, false, false, false, true, true, true]);
    expect(new Set(key.map(({ payload }) => payload[0]))).toEqual(new Set([5]));
    expect(bench.keysSent).toEqual([{ commandId: 'menu', digits: '5', complete: true }]);
    expectOneStream(bench);
    // The audio after it begins a new stretch, with timestamps by the clock.
    const [last, next] = [bench.sent[1], bench.sent[9]];
    expect(next).toMatchObject({ payloadType: 0, marker: true });
    expect(((next?.timestamp ?? 0) - (last?.timestamp ?? 0)) >>> 0).toBe(8 * 160);
  });

  test('is exactly as long as requested, to the millisecond', () => {
    const bench = answered();
    press(bench, '0', 90);
    bench.tick(20);

    expect(events(bench).map(durationOf)).toEqual([160, 320, 480, 640, 720, 720, 720]);
    expectOneStream(bench);
  });

  test('has the payload type that the far end declared', () => {
    const bench = answered();
    press(bench, '0123456789*#ABCD', 40);
    bench.tick(200);

    expect(heard(bench)).toEqual('0123456789*#ABCD'.split('').map((digit) => `${digit} 40`));
  });

  test('is followed by 80 ms without a key, also before a key of another command', () => {
    const bench = answered();
    press(bench, '1');
    press(bench, '1');
    bench.tick(20);

    const [first, second] = [...new Set(events(bench).map(({ timestamp }) => timestamp))];
    expect(((second ?? 0) - (first ?? 0)) >>> 0).toBe((100 + 80) * 8);
    expect(heard(bench)).toEqual(['1 100', '1 100']);
    expectOneStream(bench);
  });

  test('waits half a second for each w, while audio continues', () => {
    const bench = answered();
    press(bench, 'ww1');
    bench.tick(60);

    expect(bench.sent.findIndex(({ payloadType }) => payloadType === 96)).toBe(50);
    expect(heard(bench)).toEqual(['1 100']);
  });
});

describe('keys', () => {
  test('delay sounds, which lose no sample', () => {
    const bench = answered();
    const mulaw = Uint8Array.from({ length: 480 }, (_, index) => index % 251);
    const sound = testSound('sound:a', mulaw);
    bench.session.execute({
      kind: 'play',
      playback: { playbackId: 'a', source: 'command', sound },
    });
    bench.tick(1);
    press(bench, '1');
    bench.tick(30);

    const audio = bench.sent.filter(({ payloadType }) => payloadType === 0);
    const spoken = audio.filter(({ payload }) => payload.some((byte) => byte !== 0xff));
    expect(spoken.flatMap(({ payload }) => payload)).toEqual([...mulaw]);
    expect(heard(bench)).toEqual(['1 100']);
  });

  test('wait for the answer, on hold, and while the clock is late', () => {
    const bench = new SessionBench();
    press(bench, '12');
    bench.tick(5);
    bench.session.applyRemote({ ...remote, keyPayloadType: 96, weSend: false }, 'answer');
    bench.tick(5);
    expect(bench.sent).toEqual([]);
    bench.session.applyRemote({ ...remote, keyPayloadType: 96 }, 'answer');
    bench.tick(2);
    for (let tick = 0; tick < 3; tick += 1) bench.session.tick(false);
    bench.tick(30);

    expect(heard(bench)).toEqual(['1 100', '2 100']);
    expectOneStream(bench);
  });

  test('can be stopped: the pressed key ends as usual', () => {
    const bench = answered();
    press(bench, '123');
    press(bench, '4');
    bench.tick(2);
    bench.session.stopPlayback();
    press(bench, '9');
    bench.tick(30);

    expect(heard(bench)).toEqual(['1 100', '9 100']);
    expect(bench.keysSent).toEqual([
      { commandId: 'menu', digits: '1', complete: false },
      { commandId: 'menu', digits: '', complete: false },
      { commandId: 'menu', digits: '9', complete: true },
    ]);
  });

  test('are reported as not sent if the far end no longer takes them, and beyond 100 commands', () => {
    const bench = answered();
    for (let count = 0; count < 101; count += 1) press(bench, '1');
    expect(bench.keysSent).toEqual([{ commandId: 'menu', digits: '', complete: false }]);
    const { keyPayloadType: _none, ...voiceOnly } = remote;
    bench.session.applyRemote(voiceOnly, 'answer');
    bench.tick(110);

    expect(bench.keysSent).toHaveLength(101);
    expect(events(bench)).toEqual([]);
  });
});
