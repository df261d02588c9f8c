// Which sessions want a clock of 20 ms, and which are looked after in time every other tick.

import { describe, expect, test } from 'vitest';
import { settingsFor } from '../support/observed.ts';
import { message, PlannedLine, voicemail } from '../support/planned-line.ts';
import { remote, SessionBench } from '../support/session-bench.ts';

describe('a session is not quiet', () => {
  test('by a sound until its end, not by detection alone', () => {
    const bench = new SessionBench();
    bench.session.applyRemote(remote, 'answer');
    bench.session.startDetection(settingsFor());
    bench.tick(2);
    // How long packets are held is settled by the clock of the first one.
    expect(bench.session.isQuiet).toBe(false);
    bench.hear(1);
    expect(bench.session.isQuiet).toBe(true);

    const mulaw = new Uint8Array(320);
    bench.session.obey({
      kind: 'play',
      playback: { playbackId: 'say', source: 'command', sound: { ...message, mulaw } },
    });
    expect(bench.session.isQuiet).toBe(false);
    bench.tick(1);
    expect(bench.session.isQuiet).toBe(false);
    bench.tick(2);
    expect(bench.session.isQuiet).toBe(true);
  });

  test('by keys until the pause after the last one', () => {
    const bench = new SessionBench();
    bench.session.applyRemote(remote, 'answer');
    bench.session.obey({
      kind: 'press',
      keys: { commandId: 'menu', digits: '5', durationMs: 100 },
    });
    expect(bench.session.isQuiet).toBe(false);
    bench.tick(5);
    expect(bench.session.isQuiet).toBe(false);
    bench.tick(10);
    expect(bench.session.isQuiet).toBe(true);
  });

  test('by a plan that waits for a beep, until it is over', () => {
    const line = new PlannedLine({ plans: { voicemail } });
    line.hear(new Int16Array(160));
    expect(line.bench.session.isQuiet).toBe(false);
    line.bench.session.abandonPlans();
    expect(line.bench.session.isQuiet).toBe(true);
  });
});
