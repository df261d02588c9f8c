// A message is left on a line: real audio, the real detector, and a far end that echoes our own
// voice.

import { describe, expect, test } from 'vitest';
import { createDetector, type Detector } from '../../../src/amd/detector.ts';
import { joined, silence, tone } from '../../../src/embedded/sandbox/tones.ts';
import {
  findWhole,
  greeting,
  message,
  PlannedLine,
  type PlannedLineOptions,
  person,
  voicemail,
} from '../support/planned-line.ts';

const pickUp = silence(400);
const beep = tone([1_000], 400, -9);
const beepEndMs = 400 + Math.ceil(greeting.length / 8) + 400 + 400;
const mailbox = joined([pickUp, greeting, silence(400), beep]);

function leave(options: PlannedLineOptions = {}): PlannedLine {
  const line = new PlannedLine(options);
  line.hear(mailbox);
  return line;
}

const startOf = ({ bench }: PlannedLine) =>
  bench.playbacks.filter(({ kind }) => kind === 'started');

describe('a message', () => {
  test('starts 150 ms after the beep, before the verdict, plays whole, and is followed by the hang-up', () => {
    const line = leave();
    const sentBefore = line.bench.sent.length;
    line.hear(silence(message.durationMs + 1_000));
    const at = findWhole(line.recorded(), message.mulaw);

    expect(sentBefore * 20).toBeLessThanOrEqual(beepEndMs + 20);
    expect((at ?? 0) / 8 - beepEndMs).toBeGreaterThan(0);
    expect((at ?? 0) / 8 - beepEndMs).toBeLessThanOrEqual(150);
    expect(line.log).toEqual([
      'amd_machine_detected',
      'voicemail started',
      'amd_machine_stopped_speaking',
      'amd_tone_detected',
      'amd_stopped',
      'voicemail done',
      'voicemail-left',
    ]);
    expect(startOf(line)[0]).toMatchObject({ afterBeep: true, sound: 'sound:offer' });
    // The plans' last report says that nothing more follows. It comes once.
    expect(line.bench.plans.filter(({ kind }) => kind === 'done')).toHaveLength(1);
    expect(line.bench.plans.at(-1)).toEqual({ kind: 'done' });
  });

  test('ends at once when two people begin to talk', () => {
    const line = leave();
    line.hear(silence(600));
    expect(line.log).toContain('voicemail started');
    line.bench.session.abandonPlans();
    const since = line.nowMs;
    line.hear(joined([silence(message.durationMs), beep, silence(message.durationMs)]));

    expect(line.recorded(since).every((byte) => byte === 0xff)).toBe(true);
    expect(line.log.at(-1)).toBe('voicemail stopped');
    expect(line.bench.plans.slice(-2)).toEqual([{ kind: 'held', by: undefined }, { kind: 'done' }]);
    expect(line.isOver).toBe(false);
  });

  test('starts in time if only the beep reveals the machine', () => {
    const line = new PlannedLine();
    const short = joined([pickUp, greeting.subarray(0, 2_000 * 8), silence(400), beep]);
    line.hear(joined([short, silence(message.durationMs + 1_000)]));
    const at = findWhole(line.recorded(), message.mulaw);

    expect(line.bench.amd[0]).toMatchObject({ reason: 'tone' });
    expect((at ?? Infinity) / 8 - short.length / 8).toBeLessThanOrEqual(150);
    expect(startOf(line)).toMatchObject([{ afterBeep: true }]);
  });

  test.each([0, 60, 200, 440])('is not interrupted by its own echo %i ms later', (delayMs) => {
    const line = leave({ echo: { db: -20, delayMs } });
    line.hear(silence(message.durationMs + 1_000));

    expect(line.bench.playbacks.map(({ kind }) => kind)).toEqual(['started', 'finished']);
    expect(line.log.at(-1)).toBe('voicemail-left');
  });

  test('restarts at a second beep, despite its own echo on the line', () => {
    const line = leave({ echo: { db: -20, delayMs: 100 } });
    line.hear(joined([silence(1_500), beep, silence(message.durationMs + 1_000)]));
    const secondBeepEndMs = beepEndMs + 1_500 + 400;
    const at = findWhole(line.recorded(secondBeepEndMs), message.mulaw);

    expect((at ?? Infinity) / 8).toBeLessThanOrEqual(170);
    expect(startOf(line)).toMatchObject([{ afterBeep: true }, { restart: 1 }]);
    expect(line.log.at(-1)).toBe('voicemail-left');
  });

  test('restarts after a greeting that goes on, and after its beep', () => {
    const line = new PlannedLine({ plans: { voicemail: { ...voicemail, waitForBeepMs: 2_500 } } });
    line.hear(joined([pickUp, greeting, silence(3_500)]));
    expect(startOf(line)).toMatchObject([{ afterBeep: false }]);
    line.hear(joined([greeting, silence(600)]));
    expect(line.bench.playbacks.at(-1)).toMatchObject({ kind: 'finished', reason: 'stopped' });
    line.hear(joined([beep, silence(message.durationMs + 1_000)]));

    expect(startOf(line)).toMatchObject([{ afterBeep: false }, { restart: 1, afterBeep: true }]);
    expect(line.bench.playbacks.at(-1)).toMatchObject({ kind: 'finished', reason: 'done' });
    expect(line.log.at(-1)).toBe('voicemail-left');
  });

  test('is stopped by a person who picks up after all', () => {
    const line = leave();
    line.hear(joined([silence(800), person, silence(3_000)]));

    expect(startOf(line)).toHaveLength(1);
    expect(line.bench.playbacks.at(-1)).toMatchObject({ kind: 'finished', reason: 'stopped' });
    expect(line.log.at(-1)).toBe('voicemail-left');
  });

  test('waits for the beep from the last word on, regardless of the tone time-out', () => {
    const line = new PlannedLine({
      settings: {
        timers: {
          ...{ noSpeechTimeoutMs: 5_000, decisionTimeoutMs: 15_000, toneTimeoutMs: 3_000 },
          greetingCompletionTimeoutMs: 1_000,
        },
      },
    });
    line.hear(joined([pickUp, greeting, silence(3_000), beep, silence(message.durationMs + 500)]));

    expect(startOf(line)).toMatchObject([{ afterBeep: true }]);
  });

  test('starts without a beep if no beep comes', () => {
    const line = new PlannedLine();
    line.hear(joined([pickUp, greeting, silence(3_600)]));
    expect(startOf(line)).toEqual([]);
    line.hear(silence(1_200));

    expect(startOf(line)).toMatchObject([{ afterBeep: false }]);
  });

  test('is not left without a beep if the request forbids it', () => {
    const line = new PlannedLine({ plans: { voicemail: { ...voicemail, ifNoBeep: 'hangup' } } });
    line.hear(joined([pickUp, greeting, silence(5_000)]));

    expect(line.bench.playbacks).toEqual([]);
    expect(line.log.at(-1)).toBe('machine');
  });

  test('is cut if it takes longer than its limit', () => {
    const line = leave({ plans: { voicemail: { ...voicemail, maxMs: 1_000 } } });
    line.hear(silence(1_500));

    expect(line.bench.playbacks.at(-1)).toMatchObject({ reason: 'stopped' });
    expect(line.bench.playbacks.at(-1)).toHaveProperty('playedMs', 1_000);
    expect(line.log.at(-1)).toBe('voicemail-left');
  });

  test('is not left with a person, nor with a fax', () => {
    const line = new PlannedLine();
    line.hear(joined([pickUp, person, silence(10_000)]));
    expect(line.bench.playbacks).toEqual([]);
    expect(line.isOver).toBe(false);

    const fax = new PlannedLine();
    fax.hear(joined([pickUp, tone([2_100], 3_000, -10), silence(1_000)]));
    expect(fax.bench.playbacks).toEqual([]);
    expect(fax.log.at(-1)).toBe('machine');
  });

  test('keeps the ear on the line only while the message may still be left', () => {
    const detectors: Detector[] = [];
    const heardLine = () =>
      new PlannedLine({
        createDetector: (settings) => {
          const detector = createDetector(settings);
          detectors.push(detector);
          return detector;
        },
      });
    const withPerson = heardLine();
    withPerson.hear(joined([pickUp, person, silence(2_000)]));
    const withMachine = heardLine();
    withMachine.hear(joined([mailbox, silence(message.durationMs)]));
    expect(detectors.map(({ done, ear }) => [done, ear !== undefined])).toEqual([
      [false, true],
      [true, true],
    ]);
    withPerson.hear(silence(6_000));
    withMachine.hear(silence(1_000));

    expect(detectors.map(({ done, ear }) => [done, ear])).toEqual([
      [true, undefined],
      [true, undefined],
    ]);
  });
});
