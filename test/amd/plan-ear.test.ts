// The ear of a plan: it uses detection's analysis, during detection and after it.

import { describe, expect, test } from 'vitest';
import { createDetector } from '../../src/amd/detector.ts';
import type { AmdEvent } from '../../src/calls/detection/amd-event.ts';
import { createSounds } from '../../src/embedded/sandbox/sounds.ts';
import { joined, silence, tone } from '../../src/embedded/sandbox/tones.ts';
import { defaultSettings, listen } from './listen.ts';

const { voicemail, voicemailTwice, hello } = createSounds();
const mailbox = joined([voicemail.samples, silence(500)]);
const settings = { ...defaultSettings, waitForBeepMs: 4_000 };

class Line {
  readonly detector = createDetector(settings);
  readonly events: AmdEvent[] = [];
  readonly beepsMs: number[] = [];
  #nowMs = 0;

  get ear() {
    const { ear } = this.detector;
    if (ear === undefined) throw new Error('there is no ear');
    return ear;
  }

  hear(samples: Int16Array, { sentPower = 0, onBeep = (): void => undefined } = {}): void {
    for (let at = 0; at < samples.length; at += 160) {
      const frame = new Int16Array(160);
      frame.set(samples.subarray(at, at + 160));
      this.#nowMs += 20;
      this.events.push(...this.detector.push(frame, false, sentPower));
      if (!this.ear.beep) continue;
      this.beepsMs.push(this.#nowMs);
      onBeep();
    }
  }
}

const toneMs = (events: readonly AmdEvent[]) =>
  events.find(({ event }) => event === 'amd_tone_detected')?.elapsedMs ?? Number.NaN;

describe('the ear of a plan', () => {
  test('reports each beep once: the first before detection states it, the others after detection', () => {
    const line = new Line();
    line.hear(joined([voicemailTwice.samples, silence(500)]));

    expect(line.events.at(-1)).toMatchObject({ event: 'amd_stopped', reason: 'tone' });
    expect(line.beepsMs).toHaveLength(2);
    expect(line.beepsMs[0]).toBeLessThan(toneMs(line.events));
    expect(line.beepsMs[1]).toBeGreaterThan(toneMs(line.events));
  });

  test('leaves the events of detection unchanged if a message begins before they come', () => {
    const line = new Line();
    line.hear(mailbox, { onBeep: () => line.ear.forgetSpeaker() });

    expect(line.events).toEqual(listen(mailbox, settings));
  });

  test('counts only speech from after the start of the message', () => {
    const line = new Line();
    line.hear(mailbox, { onBeep: () => line.ear.forgetSpeaker() });
    expect(line.ear).toMatchObject({ speechMs: 0, who: undefined });
    line.hear(joined([hello.samples, silence(1_000)]));

    expect(line.ear.speechMs).toBeGreaterThan(240);
    expect(line.ear.speechMs).toBeLessThan(1_500);
    expect(line.ear.who).toBe('human');
  });

  test('ignores the echo of a message, but only from the start of the message on', () => {
    const sent = tone([440], 2_000, -9);
    const sentPower = 10 ** (-9 / 10);
    const echo = sent.map((sample) => sample / 10);
    const [before, after] = [new Line(), new Line()];
    before.hear(mailbox);
    after.hear(mailbox, { onBeep: () => after.ear.forgetSpeaker() });
    for (const line of [before, after]) line.hear(joined([echo, silence(500)]), { sentPower });

    expect(before.beepsMs).toHaveLength(2);
    expect(after.beepsMs).toHaveLength(1);
  });

  test('is gone once detection is stopped, and for calls that leave no message', () => {
    const line = new Line();
    line.hear(mailbox);
    line.detector.stop('plans-over');

    expect(line.detector.ear).toBeUndefined();
    expect(createDetector(defaultSettings).ear).toBeUndefined();
  });
});
