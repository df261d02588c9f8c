// The plans as state machines without a line: events and heard frames in, actions out.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type AmdEvent, amdEventNames } from '../../../src/calls/detection/amd-event.ts';
import type { CallPlans, PlanReport } from '../../../src/calls/plans/plans.ts';
import type { PlaybackReport } from '../../../src/calls/playback/playback.ts';
import type { HeardOnLine } from '../../../src/media/detector-port.ts';
import { PlannedCall } from '../../../src/media/plans/call-plans.ts';
import type { PlanAction } from '../../../src/media/plans/plan-port.ts';
import { ScreeningPlan } from '../../../src/media/plans/screening-plan.ts';
import { VoicemailPlan } from '../../../src/media/plans/voicemail-plan.ts';
import { testSound } from '../../support/test-sound.ts';

const sound = testSound('sound:offer', new Uint8Array(8_000));
const settings = { sound, ifNoBeep: 'play', waitForBeepMs: 4_000, maxMs: 60_000 } as const;
const quiet: HeardOnLine = {
  ...{ beep: false, tonePending: false, speechMs: 0, pauseMs: 0, who: undefined },
};
const machine: AmdEvent = { event: 'amd_machine_detected', reason: 'long-greeting', elapsedMs: 20 };
const tone: AmdEvent = { event: 'amd_tone_detected', reason: 'beep', elapsedMs: 20 };
const stopped = (reason: string): AmdEvent => ({ event: 'amd_stopped', reason, elapsedMs: 20 });
const screening: AmdEvent = { ...machine, reason: 'call-screening' };

const reported = (report: PlanReport) => {
  if (report.kind === 'over') return report.outcome;
  if (report.kind === 'done') return 'done';
  return report.kind === 'armed' ? `armed ${report.round}` : `held by ${report.by}`;
};

const named = (actions: readonly PlanAction[]) =>
  actions.map((action) => {
    if (action.do === 'play') return `play ${action.playback.restart ?? 0}`;
    if (action.do === 'report') return reported(action.report);
    return action.do === 'muteBot' && !action.isMuted ? 'unmuteBot' : action.do;
  });

describe('a voicemail plan', () => {
  const greeted = (more: Partial<typeof settings> = {}) => {
    const plan = new VoicemailPlan({ ...settings, ...more });
    expect(named(plan.onAmd(machine))).toEqual(['muteBot']);
    return plan;
  };
  const frames = (plan: VoicemailPlan, count: number, heard = quiet, isPlaying = true) =>
    named(Array.from({ length: count }, () => plan.advance({ heard, isPlaying })).flat());
  const start = ['muteBot', 'stopStream', 'forgetSpeaker', 'play 0'];

  test('plays after a beep that detection reports or that the plan hears itself', () => {
    expect(named(greeted().onAmd(tone))).toEqual(start);
    expect(frames(greeted(), 1, { ...quiet, beep: true }, false)).toEqual(start);
  });

  test('counts a beep once, whether detection or the plan hears it first', () => {
    const plan = greeted();
    frames(plan, 1, { ...quiet, beep: true }, false);

    expect(frames(plan, 1)).toEqual([]);
    expect(plan.onAmd(tone)).toEqual([]);
    expect(frames(plan, 1, { ...quiet, beep: true })).toEqual(['forgetSpeaker', 'play 1']);
  });

  test('hangs up 200 ms after the end of the message', () => {
    const plan = greeted();
    plan.onAmd(tone);
    frames(plan, 50);

    expect(frames(plan, 10, quiet, false)).toEqual([]);
    expect(frames(plan, 1, quiet, false)).toEqual(['stopPlaying', 'voicemail-left']);
    expect(frames(plan, 100, { ...quiet, beep: true }, false)).toEqual([]);
  });

  test('does nothing for a person, or in silence', () => {
    for (const reason of ['human', 'no-speech', 'decision-timeout', 'human-after-screening']) {
      const plan = new VoicemailPlan(settings);
      plan.onAmd({ ...machine, event: 'amd_human_detected' });
      expect(plan.onAmd(stopped(reason))).toEqual([]);
      expect(plan.isOver).toBe(true);
    }
  });

  test('plays if a beep corrects the verdict of a person', () => {
    const plan = new VoicemailPlan(settings);
    plan.onAmd({ ...machine, event: 'amd_human_detected' });

    expect(named(plan.onAmd({ ...tone, corrects: 'amd_human_detected' }))).toEqual(start);
  });

  test('requires a beep after the three tones of the network', () => {
    const plan = new VoicemailPlan(settings);
    plan.onAmd({ ...machine, reason: 'sit-tone' });

    expect(named(plan.onAmd(stopped('tone-timeout')))).toEqual(['stopPlaying', 'machine']);
  });

  test('waits for a mailbox by its own clock after a screening without an answer', () => {
    const plan = new VoicemailPlan(settings);
    plan.onAmd(screening);
    expect(named(plan.onAmd(stopped('machine-after-screening')))).toEqual(['muteBot']);
    expect(frames(plan, 10, { ...quiet, speechMs: 3_000, pauseMs: 3_980 }, false)).toEqual([]);

    expect(frames(plan, 1, { ...quiet, speechMs: 3_000, pauseMs: 4_000 }, false)).toEqual(start);
  });

  test('does not wait for a beep if detection has failed', () => {
    const plan = new VoicemailPlan(settings);
    plan.onAmd(screening);
    plan.onAmd(stopped('machine-after-screening'));

    expect(named(plan.advance({ heard: undefined, isPlaying: false }))).toEqual(start);
  });

  test('restarts the message five times at most, then plays it to the end', () => {
    const plan = greeted();
    plan.onAmd(tone);
    const actions = Array.from({ length: 20 }, () =>
      frames(plan, 10, { ...quiet, beep: true }),
    ).flat();

    expect(actions.filter((action) => action.startsWith('play'))).toEqual([
      ...['play 1', 'play 2', 'play 3', 'play 4', 'play 5'],
    ]);
  });

  test('plays only while it has the call, and ends the call once, in random runs', () => {
    fc.assert(
      fc.property(fc.array(happening, { maxLength: 250, size: 'max' }), (happenings) => {
        expectSane(happenings);
      }),
      { numRuns: 200 },
    );
  });
});

describe('a screening plan', () => {
  const answering = () => {
    const plan = new ScreeningPlan({ sound });
    expect(plan.onAmd(screening)).toEqual([]);
    expect(plan.controlsCall).toBe(true);
    const actions = plan.onAmd({ ...machine, event: 'amd_machine_stopped_speaking' });
    expect(named(actions)).toEqual(['muteBot', 'stopDetection', 'play 0']);
    return plan;
  };
  const quietly = (isPlaying: boolean) => ({ heard: quiet, isPlaying });

  test('plays once the screener has spoken, then starts another round', () => {
    const plan = answering();
    plan.onAmd(stopped('screened'));
    expect(plan.advance(quietly(true))).toEqual([]);

    expect(named(plan.advance(quietly(false)))).toEqual(['unmuteBot', 'armed 2', 'detect']);
    expect(plan.controlsCall).toBe(false);
    expect(plan.isOver).toBe(false);
  });

  test.each(['amd_human_detected', 'amd_machine_detected'] as const)(
    'is over when %s reports who came',
    (event) => {
      const plan = answering();
      plan.advance(quietly(false));
      plan.onAmd({ ...machine, event, round: 2 });
      plan.onAmd({ ...stopped('human'), round: 2 });

      expect(plan.isOver).toBe(true);
    },
  );

  test('does not answer again, but keeps listening', () => {
    const plan = answering();
    plan.advance(quietly(false));
    plan.onAmd({ ...screening, round: 2 });
    const actions = plan.onAmd({ ...machine, event: 'amd_machine_stopped_speaking', round: 2 });

    expect(named(actions)).toEqual(['stopDetection', 'armed 3', 'detect']);
  });

  test('does nothing if there is no screener', () => {
    const plan = new ScreeningPlan({ sound });
    plan.onAmd(machine);
    plan.onAmd(stopped('tone'));

    expect(plan.isOver).toBe(true);
    expect(plan.advance(quietly(false))).toEqual([]);
  });
});

/** Records what a plan does, frame by frame. */
function actionsOf(happenings: readonly Happening[]): readonly (readonly PlanAction[])[] {
  const plan = new VoicemailPlan({ ...settings, maxMs: 3_000, waitForBeepMs: 500 });
  return happenings.map(({ event, heard, isPlaying }) => [
    ...(event === undefined ? [] : plan.onAmd(event)),
    ...plan.advance({ heard, isPlaying }),
  ]);
}

function expectSane(happenings: readonly Happening[]): void {
  const frames = actionsOf(happenings);
  const actions = frames.flat();
  const firstPlay = frames.findIndex((frame) => frame.some((action) => action.do === 'play'));
  const end = frames.findIndex((frame) => frame.some((action) => action.do === 'report'));
  const plays = actions.filter((action) => action.do === 'play');
  const names = named(actions);

  expect(actions.filter((action) => action.do === 'report').length).toBeLessThanOrEqual(1);
  expect(plays.length).toBeLessThanOrEqual(6);
  // A message counts as left only if one began, within its time. After the end, the plan does
  // nothing.
  if (names.includes('voicemail-left')) expect(plays).not.toEqual([]);
  if (names.includes('machine')) expect(plays).toEqual([]);
  if (end !== -1) expect(frames.slice(end + 1).flat()).toEqual([]);
  const lastFrame = end === -1 ? frames.length - 1 : end;
  if (firstPlay !== -1) expect((lastFrame - firstPlay) * 20).toBeLessThanOrEqual(3_000 + 200);
}

type Happening = {
  readonly event: AmdEvent | undefined;
  readonly heard: HeardOnLine | undefined;
  readonly isPlaying: boolean;
};

const happening: fc.Arbitrary<Happening> = fc.record({
  event: fc.option(
    fc.record({
      event: fc.constantFrom(...amdEventNames),
      reason: fc.constantFrom('tone', 'human', 'fax-tone', 'sit-tone', 'call-screening', 'silence'),
      elapsedMs: fc.constant(20),
    }),
    { nil: undefined, freq: 12 },
  ),
  heard: fc.option(
    fc.record({
      beep: fc.integer({ min: 0, max: 20 }).map((one) => one === 0),
      tonePending: fc.boolean(),
      speechMs: fc.constantFrom(0, 0, 0, 100, 400),
      pauseMs: fc.constantFrom(0, 100, 600, 1_400),
      who: fc.constantFrom('human', 'machine', undefined),
    }),
    { nil: undefined, freq: 30 },
  ),
  isPlaying: fc.integer({ min: 0, max: 30 }).map((one) => one > 0),
});

describe('the plans of a call', () => {
  const loaded = { voicemail: settings, screening: { sound } };

  function planned(plans: CallPlans) {
    const reports: string[] = [];
    const nothing = (): void => undefined;
    const call = new PlannedCall(plans, {
      ...{ play: nothing, stopPlayback: nothing, muteBot: nothing, stopStream: nothing },
      ...{ forgetSpeaker: nothing, stopDetection: nothing, restartDetection: nothing },
      report: (report) => reports.push(reported(report)),
    });
    return { call, reports };
  }

  test('are done when two people begin to talk, whether or not a plan had the call', () => {
    const idle = planned(loaded);
    idle.call.abandon();
    const holding = planned(loaded);
    holding.call.onAmd(machine);
    holding.call.abandon();
    holding.call.abandon();

    expect(idle.reports).toEqual(['done']);
    expect(holding.reports).toEqual(['held by voicemail', 'held by undefined', 'done']);
  });

  test.each([
    ['machine', false],
    ['voicemail-left', true],
  ])('report %s if it is %s that some of the message was sent', (outcome, isHeard) => {
    const { call, reports } = planned({ voicemail: settings });
    call.onAmd(machine);
    call.onAmd(tone);
    if (isHeard) call.onPlayback({ kind: 'started', source: 'voicemail' } as PlaybackReport);
    call.onPlayback({ kind: 'finished', source: 'voicemail' } as PlaybackReport);
    for (let frame = 0; frame < 12; frame += 1) call.tick(quiet);

    expect(reports).toContain(outcome);
  });

  test('are done when detection ends in the last round of a screening', () => {
    const { call, reports } = planned(loaded);
    for (let round = 1; round <= 4; round += 1) {
      call.onAmd(screening);
      call.onAmd(stopped('greeting-timeout'));
      for (let frame = 0; frame < 2; frame += 1) {
        call.onPlayback({ kind: 'finished', source: 'screening' } as PlaybackReport);
        call.tick(quiet);
      }
    }

    expect(reports.filter((report) => report === 'done')).toEqual(['done']);
    expect(reports.at(-1)).toBe('done');
  });
});
