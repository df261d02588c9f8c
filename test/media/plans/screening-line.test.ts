// A call screener is answered on a line. A scripted recogniser understands it. The real detector
// then judges whoever comes next.

import { describe, expect, test } from 'vitest';
import { createDetector } from '../../../src/amd/detector.ts';
import type { AmdEvent } from '../../../src/calls/detection/amd-event.ts';
import { joined, silence, tone } from '../../../src/embedded/sandbox/tones.ts';
import type { CreateDetector } from '../../../src/media/detector-port.ts';
import { PlayoutPool } from '../../../src/media/playout/playout-pool.ts';
import { PlayoutQueue } from '../../../src/media/playout/playout-queue.ts';
import {
  findWhole,
  greeting,
  message,
  PlannedLine,
  person,
  voicemail,
} from '../support/planned-line.ts';
import { quietBot } from '../support/quiet-bot.ts';

const answer = { ...message, name: 'sound:who-is-calling', mulaw: message.mulaw.slice(800) };
const verdictMs = 1_000;
const spokenMs = 3_000;

/** The first round understands a screener. The other rounds use the real detector. */
function screenedFirst(): CreateDetector {
  let rounds = 0;
  return (settings) => {
    rounds += 1;
    return rounds === 1 ? screener() : createDetector(settings);
  };
}

function screener(): ReturnType<CreateDetector> {
  let elapsedMs = 0;
  let done = false;
  const eventOf = (event: AmdEvent['event'], reason: string) => [{ event, reason, elapsedMs }];
  return {
    get done() {
      return done;
    },
    push() {
      elapsedMs += 20;
      if (elapsedMs === verdictMs) return eventOf('amd_machine_detected', 'call-screening');
      return elapsedMs === spokenMs ? eventOf('amd_machine_stopped_speaking', 'silence') : [];
    },
    stop(reason) {
      done = true;
      return eventOf('amd_stopped', reason);
    },
  };
}

function screened(plans = {}) {
  const line = new PlannedLine({
    plans: { screening: { sound: answer }, ...plans },
    createDetector: screenedFirst(),
  });
  line.hear(silence(spokenMs));
  return line;
}

describe('a call screening', () => {
  test('is answered once it has asked; the person who comes next is detected as a person', () => {
    const line = screened();
    line.hear(silence(answer.mulaw.length / 8 + 500));
    const armedMs = line.nowMs;
    line.hear(joined([person, silence(8_000)]));

    expect(findWhole(line.recorded(), answer.mulaw)).toBe(
      (line.bench.sent.findIndex(({ payload }) => payload.some((byte) => byte !== 0xff)) ?? 0) *
        160,
    );
    expect(line.log).toEqual([
      ...['amd_machine_detected', 'amd_machine_stopped_speaking', 'amd_stopped'],
      ...['screening started', 'screening done', 'round 2'],
      ...['amd_human_detected 2', 'amd_stopped 2'],
    ]);
    const [, , stopped, human] = line.bench.amd;
    expect(stopped).toMatchObject({ reason: 'screened' });
    // Times count from the answer of the call, in every round.
    expect(human?.elapsedMs).toBeGreaterThan(armedMs);
    expect(human?.elapsedMs).toBeLessThan(armedMs + 3_000);
    expect(line.isOver).toBe(false);
  });

  test('that leads to a mailbox gets the message there', () => {
    const line = screened({ voicemail });
    const beep = tone([1_000], 400, -9);
    line.hear(silence(answer.mulaw.length / 8 + 500));
    line.hear(joined([greeting, silence(400), beep, silence(message.durationMs + 800)]));

    expect(findWhole(line.recorded(), message.mulaw)).toBeDefined();
    expect(line.log.slice(5)).toEqual([
      ...['round 2', 'amd_machine_detected 2', 'voicemail started'],
      ...['amd_machine_stopped_speaking 2', 'amd_tone_detected 2', 'amd_stopped 2'],
      ...['voicemail done', 'voicemail-left'],
    ]);
  });

  test('mutes the bot only while it is answered', () => {
    const line = screened();
    const marks: string[] = [];
    const queue = new PlayoutQueue(new PlayoutPool(1_000_000), (name) => marks.push(name));
    line.bench.session.streaming.start(quietBot, queue);
    queue.write(new Uint8Array(800).fill(1));
    queue.mark('meanwhile');
    expect(marks).toEqual(['meanwhile']);
    expect(line.bench.session.isPlanInControl).toBe(true);
    line.hear(silence(answer.mulaw.length / 8 + 500));
    expect(line.bench.session.isPlanInControl).toBe(false);
    queue.write(new Uint8Array(800).fill(2));
    line.hear(silence(200));

    expect(line.recorded().includes(1)).toBe(false);
    expect(findWhole(line.recorded(), new Uint8Array(800).fill(2))).toBeDefined();
  });
});
