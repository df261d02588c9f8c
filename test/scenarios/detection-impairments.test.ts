// Detection on impaired lines: what the gateway reports about people and machines whose packets are
// late, lost, held back or never sent. SIP and RTP are real. Assertions use the clock of the
// gateway, which counts frames since the 200.

import { beforeAll, describe, expect, test } from 'vitest';
import { createSounds } from '../../src/embedded/sandbox/sounds.ts';
import { joined, silence, tone } from '../../src/embedded/sandbox/tones.ts';
import { listen } from '../amd/listen.ts';
import { seededRandom } from '../media/support/random.ts';
import { type BatchedEvents, createCallBatch, type Script } from '../support/call-batch.ts';
import {
  changeSender,
  drift,
  type Impairment,
  impaired,
  jitter,
  lose,
  planOf,
  reorder,
  stall,
  stallEvery,
  suppressSilence,
} from '../support/impairments.ts';
import { startLaptop } from '../support/laptop.ts';
import { forSuite } from '../support/opened.ts';
import type { ReceivedEvents } from '../support/received-events.ts';

const human = ['amd_human_detected', 'amd_stopped'];
const machine = ['amd_machine_detected', 'amd_machine_stopped_speaking', 'amd_stopped'];
const machineThatBeeps = [
  'amd_machine_detected',
  'amd_machine_stopped_speaking',
  'amd_tone_detected',
  'amd_stopped',
];
const noSpeech = ['amd_no_speech_detected', 'amd_stopped'];

/** Longer than any call in this file. */
const wholeCallMs = 15_000;
const inactivityMs = 4_000;
const sounds = createSounds();
const hello = sounds.hello.samples;
const announcement = sounds.announcement.samples;
const voicemail = sounds.voicemail.samples;

const { call, callEndedByGateway, place } = createCallBatch();

const laptop = forSuite(() => startLaptop({ RTP_INACTIVITY_TIMEOUT_MS: String(inactivityMs) }));
beforeAll(async () => {
  place(laptop);
});

/** Returns a plan of the sound, followed by silence until the end of the call. */
function lastsOn(sound: Int16Array, ...impairments: readonly Impairment[]) {
  return impaired(planOf(joined([sound, silence(wholeCallMs)])), ...impairments);
}

function answersWith(sound: Int16Array, ...impairments: readonly Impairment[]): Script {
  return async (callee) => {
    await callee.answer();
    await callee.line.play(lastsOn(sound, ...impairments), wholeCallMs);
  };
}

/**
 * Expects the same events on NATS, in the context and at the receiver: each event once and in
 * order.
 */
function expectReceived(received: ReceivedEvents, names: readonly string[]): void {
  expect(received.onNats).toEqual(names);
  expect(received.inContext).toEqual(names);
  expect(received.notified).toEqual(names);
  expect(received.end.machineDetection).toBe(names[0]);
  expect(received.all.map(({ sequence }) => sequence)).toEqual(
    received.all.map((_, index) => index + 1),
  );
  const times = received.events.map(({ elapsedMs }) => elapsedMs);
  expect(times).toEqual(times.toSorted((a, b) => a - b));
}

function elapsedMs(received: ReceivedEvents, event: string): number {
  return Number(received.evidence(event)?.['elapsedMs']);
}

/**
 * Expects the verdict as soon as on a good line. The tolerance covers the effects of the line, and
 * of a busy machine on the callee's side.
 */
function expectAsOnGoodLine(
  received: BatchedEvents,
  sound: Int16Array,
  { startsAtMs = 0, earlierByMs = 300 } = {},
): void {
  const [verdict] = listen(sound);
  if (verdict === undefined) throw new Error('the detector says nothing of this sound');
  const expectedMs = startsAtMs + verdict.elapsedMs;
  expect(received.onNats[0]).toBe(verdict.event);
  expect(elapsedMs(received, verdict.event)).toBeGreaterThan(expectedMs - earlierByMs);
  expect(elapsedMs(received, verdict.event)).toBeLessThan(expectedMs + 1_500 + received.latestMs);
}

describe('on a line with 5 % loss, reordering, jitter of 60 ms and stalls of 100 ms', () => {
  const badLine = (seed: number): readonly Impairment[] => {
    const random = seededRandom(seed);
    return [lose(0.05, random), reorder(0.05, random), jitter(60, random), stallEvery(700, 100)];
  };
  const person = call(answersWith(hello, ...badLine(3)));
  const mailbox = call(answersWith(voicemail, ...badLine(4)));

  test('a person', async () => {
    await person.judged((received) => {
      expectReceived(received, human);
      expectAsOnGoodLine(received, hello);
    });
  });

  test('a voicemail and its beep', async () => {
    await mailbox.judged((received) => {
      expectReceived(received, machineThatBeeps);
      expectAsOnGoodLine(received, voicemail);
    });
  });
});

describe('after early media', () => {
  const afterAnnouncement = call(async (callee) => {
    callee.ringWithEarlyMedia();
    await callee.line.play(planOf(announcement), 3_000);
    await callee.answer();
    await callee.line.play(lastsOn(hello), wholeCallMs);
  });
  const duringRingback = call(
    async (callee) => {
      await using carrier = await callee.anotherLine();
      callee.ringWithEarlyMedia(carrier);
      const ringing = carrier.play(planOf(sounds.ringback.samples), 2_400);
      await callee.line.pause(1_500);
      await callee.answer();
      await Promise.all([ringing, callee.line.play(lastsOn(silence(0)), wholeCallMs)]);
    },
    { timers: { noSpeechTimeoutMs: 2_000 } },
  );

  test('a person after an announcement: time and speech count from the answer', async () => {
    await afterAnnouncement.judged((received) => {
      expectReceived(received, human);
      expectAsOnGoodLine(received, hello);
      expect(received.evidence('amd_human_detected')?.['speechMs']).toBeLessThan(1_000);
    });
  });

  test('ringback from another address that outlasts the answer is neither speech nor a beep', async () => {
    await duringRingback.judged((received) => {
      expectReceived(received, noSpeech);
      expect(elapsedMs(received, 'amd_no_speech_detected')).toBe(2_000);
    });
  });
});

describe('on hold', () => {
  const heldMs = inactivityMs + 500;
  const heldAtOnce = call(
    async (callee) => {
      await callee.answer();
      await callee.line.play(planOf(silence(400)), 400);
      expect(await callee.reoffer('sendonly')).toContain('a=recvonly');
      await callee.line.pause(wholeCallMs);
    },
    { timers: { noSpeechTimeoutMs: 2_000 } },
  );
  const heldForLong = call(
    async (callee) => {
      await callee.answer();
      await callee.line.play(planOf(silence(200)), 200);
      expect(await callee.reoffer('inactive')).toContain('a=inactive');
      await callee.line.pause(heldMs);
      expect(await callee.reoffer('sendrecv')).toContain('a=sendrecv');
      await callee.line.play(lastsOn(hello), wholeCallMs);
    },
    { timers: { noSpeechTimeoutMs: 10_000 } },
  );
  const heldAfterGreeting = call(async (callee) => {
    await callee.answer();
    await callee.line.play(planOf(announcement), 5_000);
    await callee.reoffer('sendonly');
    await callee.line.pause(2_500);
    await callee.reoffer('sendrecv');
    await callee.line.play(lastsOn(tone([1_000], 500, -9)), wholeCallMs);
  });
  const moved = call(async (callee) => {
    await callee.answer();
    await callee.line.play(planOf(voicemail.subarray(0, 16_000)), 2_000);
    await using other = await callee.anotherLine();
    await callee.reoffer('sendrecv', other);
    const rest = other.play(lastsOn(voicemail.subarray(16_000)), wholeCallMs);
    await callee.line.pause(wholeCallMs);
    other.stop();
    await rest;
  });

  test('before any voice: noSpeechTimeoutMs expires on time', async () => {
    await heldAtOnce.judged((received) => {
      expectReceived(received, noSpeech);
      expect(elapsedMs(received, 'amd_no_speech_detected')).toBe(2_000);
    });
  });

  test('for longer than a line may be dead: a person is judged by the speech after the resume', async () => {
    await heldForLong.judged((received) => {
      expectReceived(received, human);
      expectAsOnGoodLine(received, hello, { startsAtMs: 200 + heldMs });
    });
  });

  test('after a greeting: its end is reported while no packet arrives, the beep after the resume', async () => {
    await heldAfterGreeting.judged((received) => {
      expectReceived(received, machineThatBeeps);
      expectAsOnGoodLine(received, announcement);
      expect(received.evidence('amd_machine_stopped_speaking')).toMatchObject({
        reason: 'silence',
        pauseMs: 2_000,
      });
      expect(elapsedMs(received, 'amd_tone_detected')).toBeGreaterThan(7_500);
    });
  });

  test('moved instead of held: a greeting that continues from another address is one greeting', async () => {
    await moved.judged((received) => {
      expectReceived(received, machineThatBeeps);
      expectAsOnGoodLine(received, voicemail);
    });
  });
});

describe('without RTP', () => {
  const staysSilent: Script = async (callee) => {
    await callee.answer();
  };
  const silent = callEndedByGateway(staysSilent, { timers: { noSpeechTimeoutMs: 2_000 } });
  const dead = callEndedByGateway(staysSilent, { timers: { noSpeechTimeoutMs: 10_000 } });
  const diesLater = callEndedByGateway(async (callee) => {
    await callee.answer();
    await callee.line.play(planOf(announcement), 5_000);
  });

  test('no speech is reported when its timer ends, and the call ends when the line counts as dead', async () => {
    await silent.judged((received) => {
      expectReceived(received, noSpeech);
      expect(elapsedMs(received, 'amd_no_speech_detected')).toBe(2_000);
      expect(received.end).toMatchObject({
        reason: 'No RTP from the far end',
        reasonCode: 'Gateway-disconnected',
      });
    });
  });

  test('a line that is dead before the timer: an error with its reason', async () => {
    await dead.judged((received) => {
      expectReceived(received, ['amd_error', 'amd_stopped']);
      expect(received.evidence('amd_error')).toMatchObject({ reason: 'media-lost' });
      expect(received.end).toMatchObject({ reasonCode: 'Gateway-disconnected' });
    });
  });

  test('a line that is dead after a verdict: the verdict stays', async () => {
    await diesLater.judged((received) => {
      expectReceived(received, machine);
      expect(received.evidence('amd_stopped')).toMatchObject({ reason: 'media-lost' });
      expect(received.end).toMatchObject({ reasonCode: 'Gateway-disconnected' });
    });
  });
});

describe('from unusual senders', () => {
  const recording = call(async (callee) => {
    await callee.answer();
    await callee.line.play(planOf(voicemail), voicemail.length / 8);
    await callee.line.pause(wholeCallMs);
  });
  const late = joined([silence(600), hello]);
  const fast = call(answersWith(voicemail, drift(0.98)));
  const slow = call(answersWith(voicemail, drift(1.02)));
  const succeeded = call(answersWith(voicemail, changeSender(2_500)));
  const quietPerson = call(answersWith(hello, suppressSilence));
  const quietMailbox = call(answersWith(voicemail, suppressSilence));
  const heldUpPerson = call(answersWith(late, stall(0, 1_000)));
  const heldUpMailbox = call(answersWith(voicemail, stall(2_000, 3_000)));

  test.each([
    ['a clock 2 % fast', fast],
    ['a clock 2 % slow', slow],
    ['another SSRC, with other numbers, in the middle of a greeting', succeeded],
    ['silence suppressed, with comfort noise in its place', quietMailbox],
    ['nothing sent after the beep, while the mailbox records', recording],
  ])('%s', async (_name, { judged }) => {
    await judged((received) => {
      expectReceived(received, machineThatBeeps);
      expectAsOnGoodLine(received, voicemail);
    });
  });

  test('a burst of fifty packets in the middle of a greeting', async () => {
    await heldUpMailbox.judged((received) => {
      expectReceived(received, machineThatBeeps);
      // A listener hears a pause of a second between sentences. This also indicates a machine, and
      // does so sooner.
      expectAsOnGoodLine(received, voicemail, { earlierByMs: 1_000 });
    });
  });

  test('a burst of fifty packets before a person speaks', async () => {
    await heldUpPerson.judged((received) => {
      expectReceived(received, human);
      expectAsOnGoodLine(received, late);
    });
  });

  test('silence suppressed by a person', async () => {
    await quietPerson.judged((received) => {
      expectReceived(received, human);
      expectAsOnGoodLine(received, hello);
    });
  });
});
