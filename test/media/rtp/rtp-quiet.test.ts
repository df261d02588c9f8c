// Which sessions need a tick every 20 ms, and which may run two ticks at once every 40 ms.

import { describe, expect, test } from 'vitest';
import { settingsFor } from '../support/observed.ts';
import { message, PlannedLine, voicemail } from '../support/planned-line.ts';
import { remote, SessionBench } from '../support/session-bench.ts';

const oneSecond = 50;

describe('a session', () => {
  test('is not quiet while it plays a sound, but is quiet with detection alone', () => {
    const bench = new SessionBench();
    bench.session.applyRemote(remote, 'answer');
    bench.session.startDetection(settingsFor());
    bench.tick(2);
    // The first packet determines how long later packets are held.
    expect(bench.session.isQuiet).toBe(false);
    bench.hear(1);
    bench.tick(oneSecond);
    expect(bench.session.isQuiet).toBe(true);

    const mulaw = new Uint8Array(320);
    bench.session.execute({
      kind: 'play',
      playback: { playbackId: 'say', source: 'command', sound: { ...message, mulaw } },
    });
    expect(bench.session.isQuiet).toBe(false);
    bench.tick(1);
    expect(bench.session.isQuiet).toBe(false);
    bench.tick(2 + oneSecond);
    expect(bench.session.isQuiet).toBe(true);
  });

  test('is not quiet in the first second, in which every tick sends silence, unless on hold', () => {
    const bench = new SessionBench(undefined, 10);
    bench.session.applyRemote(remote, 'answer');
    bench.hear(1);
    bench.tick(oneSecond - 2);
    expect(bench.sent).toHaveLength(oneSecond - 1);
    expect(bench.session.isQuiet).toBe(false);
    bench.session.applyRemote({ ...remote, weSend: false }, 'answer');
    expect(bench.session.isQuiet).toBe(true);
    bench.session.applyRemote(remote, 'answer');
    bench.tick(oneSecond + 10);
    expect(bench.session.isQuiet).toBe(true);
  });

  test('is not quiet while it sends keys, and in the second after the last one', () => {
    const bench = new SessionBench();
    bench.session.applyRemote(remote, 'answer');
    bench.session.execute({
      kind: 'press',
      keys: { commandId: 'menu', digits: '5', durationMs: 100 },
    });
    expect(bench.session.isQuiet).toBe(false);
    bench.tick(5);
    expect(bench.session.isQuiet).toBe(false);
    bench.tick(10 + oneSecond);
    expect(bench.session.isQuiet).toBe(true);
  });

  test('is not quiet while a plan waits for a beep', () => {
    const line = new PlannedLine({ plans: { voicemail } });
    line.hear(new Int16Array(160));
    expect(line.bench.session.isQuiet).toBe(false);
    line.bench.session.abandonPlans();
    line.bench.tick(oneSecond);
    expect(line.bench.session.isQuiet).toBe(true);
  });
});
