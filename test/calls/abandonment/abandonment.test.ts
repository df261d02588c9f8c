// When a call counts as abandoned: by the clocks of two formulas, and by what each kind of call
// must connect the person to.

import { describe, expect, test } from 'vitest';
import {
  type ConnectionKind,
  type MeterFormula,
  outcomeOf,
  type Reach,
} from '../../../src/calls/abandonment/abandonment.ts';
import type { DialoutRequest } from '../../../src/calls/call-types.ts';
import type { AmdEvent } from '../../../src/calls/detection/amd-event.ts';
import type { PlaybackReport } from '../../../src/calls/playback/playback.ts';
import type { TransferPlan } from '../../../src/calls/transfer/transfer.ts';
import { epoch, type ScriptOptions, scriptCall, storedLeg } from '../../support/scripted-call.ts';

type Options = {
  readonly formula?: MeterFormula;
  readonly connected?: ConnectionKind;
  readonly request?: Partial<DialoutRequest>;
  readonly storeSecondLeg?: ScriptOptions['storeSecondLeg'];
};

const bridge: TransferPlan = {
  ...{ to: { kind: 'tel', number: '15550177' }, mode: 'bridge', timeoutMs: 20_000 },
  ...{ caller: '15550199', keepStream: false, onFailure: 'stay', on: 'person' },
};

/** A person says hello for 600 ms, from 340 ms after the answer, and waits 700 ms. */
const hello: Partial<AmdEvent> = { elapsedMs: 1_640, speechMs: 600, pauseMs: 700, spanMs: 600 };

async function answeredCall({
  formula = 'ftc',
  connected = 'bot-or-agent',
  request,
  storeSecondLeg,
}: Options = {}) {
  const abandonment = { formula, connected };
  const call = scriptCall({
    ...(storeSecondLeg === undefined ? {} : { storeSecondLeg }),
    ruling: { ruleSet: 'default', version: 1, abandonment },
    request: { campaign: 'spring', ...request },
  });
  await call.sent();
  await call.answer();
  await call.settle();
  const play = () =>
    call.media().observe({
      kind: 'playback',
      report: {
        kind: 'started',
        sha256: '0a',
        playbackId: 'play-1',
        source: 'command',
        sound: 'sound:offer',
      },
    });
  return Object.assign(call, {
    greet: () => {
      call.advance(1_640);
      call.amd('amd_human_detected', hello);
    },
    /** Detection ends, as it does at the end of each call, so that the call's end is stored. */
    stopDetection: async () => {
      call.amd('amd_stopped', { elapsedMs: 9_000 });
      await call.settle();
    },
    botSpeaks: () => call.media().observe({ kind: 'botSpoke' }),
    play,
    /** The outcomes that SQL holds. */
    outcomes: () => call.steps.findLast(({ person }) => person !== undefined)?.person,
    abandoned: () => call.stored.find(({ type }) => type === 'abandoned'),
  });
}

describe('a call that a person answers', () => {
  test('is connected if its bot speaks within two seconds of the end of the greeting', async () => {
    const call = await answeredCall();
    call.greet();
    call.advance(1_299);
    call.botSpeaks();
    call.advance(60_000);

    expect(call.outcomes()?.ftc).toBe('connected');
    expect(call.abandoned()).toBeUndefined();
  });

  test('is abandoned if its bot speaks later', async () => {
    const call = await answeredCall();
    call.greet();
    call.advance(1_301);
    call.botSpeaks();
    await call.settle();

    expect(call.outcomes()?.ftc).toBe('abandoned');
    expect(call.abandoned()?.data).toEqual({
      ...{ formula: 'ftc', missing: 'bot-or-agent', greetingEndedMs: 940, campaign: 'spring' },
    });
    call.remoteBye();
    await call.stopDetection();
    expect(call.endings()[0]?.evidence?.abandoned).toMatchObject({
      ...{ formula: 'ftc', missing: 'bot-or-agent', greetingEndedMs: 940 },
    });
  });

  test('has two outcomes if somebody comes between the ends of the two clocks', async () => {
    // Ofcom's clock began at 340 ms, and the FTC's at 940 ms.
    const call = await answeredCall();
    call.greet();
    call.advance(800);
    call.botSpeaks();

    expect(call.outcomes()).toEqual({ ftc: 'connected', ofcom: 'abandoned' });
    expect(call.abandoned()).toBeUndefined();
  });

  test('may have been greeted while the gateway heard nothing, so that clock begins earlier', async () => {
    // Heard from 340 ms, but the 250 ms before went unheard.
    const call = await answeredCall({ formula: 'ofcom' });
    call.advance(1_640);
    call.amd('amd_human_detected', { ...hello, unheardMs: 250 });
    call.advance(451);
    call.botSpeaks();
    await call.settle();

    expect(call.outcomes()).toEqual({ ftc: 'connected', ofcom: 'abandoned' });
  });

  test('is stated as abandoned by the clock of its rule set', async () => {
    const call = await answeredCall({ formula: 'ofcom' });
    call.greet();
    call.advance(701);
    await call.settle();

    expect(call.abandoned()?.data).toMatchObject({ formula: 'ofcom' });
  });

  test('is connected if the bot spoke before the verdict', async () => {
    const call = await answeredCall();
    call.botSpeaks();
    call.greet();

    expect(call.outcomes()).toEqual({ ftc: 'connected', ofcom: 'connected' });
  });

  test('counts as left if the person hangs up first, and as abandoned if the gateway does', async () => {
    const left = await answeredCall();
    left.greet();
    left.remoteBye();
    await left.stopDetection();
    const hungUp = await answeredCall();
    hungUp.greet();
    hungUp.actor.send({ type: 'command.end', command: { by: 'application' } });
    await hungUp.stopDetection();

    expect(left.outcomes()?.ftc).toBe('left');
    expect(left.end().data.abandoned).toBeUndefined();
    expect(hungUp.outcomes()?.ftc).toBe('abandoned');
    expect(hungUp.types().slice(-2)).toEqual(['abandoned', 'completed']);
    expect(hungUp.end().data.abandoned).toBe(true);
  });

  test.each(['amd_no_speech_detected', 'amd_decision_timeout', 'amd_error'] as const)(
    'begins both clocks at the answer after %s',
    async (verdict) => {
      const call = await answeredCall();
      call.advance(5_000);
      call.amd(verdict, { elapsedMs: 5_000 });
      await call.settle();

      expect(call.outcomes()).toEqual({ ftc: 'abandoned', ofcom: 'abandoned' });
      expect(call.abandoned()?.data).not.toHaveProperty('greetingEndedMs');
    },
  );
});

describe('who must reach the person', () => {
  test('only an agent, if the rule set says so', async () => {
    const call = await answeredCall({ connected: 'agent' });
    call.greet();
    call.botSpeaks();
    call.advance(1_301);
    await call.settle();

    expect(call.abandoned()?.data).toMatchObject({ missing: 'agent' });
  });

  describe('an agent whose answer is being stored', () => {
    async function agentAnswers(storeSecondLeg: NonNullable<Options['storeSecondLeg']>) {
      const call = await answeredCall({ connected: 'agent', request: { bridge }, storeSecondLeg });
      call.greet();
      await call.settle();
      call.advance(300);
      const leg = { ...storedLeg, dialogId: 'dialog-2' };
      call.secondLeg().observe({ kind: 'answered', sdp: 'sdp', leg, at: call.now() });
      await call.settle();
      return call;
    }

    test('has reached the person, although the person hangs up before it is stored', async () => {
      const call = await agentAnswers(() => new Promise(() => undefined));
      call.advance(200);
      call.remoteBye();
      await call.stopDetection();

      expect(call.outcomes()).toEqual({ ftc: 'connected', ofcom: 'connected' });
      expect(call.abandoned()).toBeUndefined();
    });

    test('has not reached the person if it cannot be stored', async () => {
      const call = await agentAnswers(async () => 'not owned');
      call.advance(2_000);
      await call.settle();

      expect(call.outcomes()).toEqual({ ftc: 'abandoned', ofcom: 'abandoned' });
    });
  });

  test('the message, if it is the purpose of the call', async () => {
    const call = await answeredCall({ connected: 'message' });
    call.greet();
    call.botSpeaks();
    call.play();

    expect(call.outcomes()?.ftc).toBe('connected');
  });
});

describe('a call with an announcement for people whom nobody reaches', () => {
  const request = {
    abandonedSound: 'sound:sorry',
    stream: { url: 'wss://bot.example/audio', connect: 'answered', parameters: {} },
  } as const;
  const finished: PlaybackReport = {
    kind: 'finished',
    playbackId: 'abandonedSound',
    source: 'announcement',
    sound: 'sound:sorry',
    reason: 'done',
    playedMs: 4_000,
  };

  test('plays it within two seconds of the greeting, in place of the bot, and then ends', async () => {
    const call = await answeredCall({ request });
    call.greet();
    call.advance(1_099);
    expect(call.log).not.toContain('play abandonedSound');
    call.advance(1);
    await call.settle();

    expect(call.log.slice(-3)).toEqual([
      'store abandoned',
      'stopStream announcement',
      'play abandonedSound',
    ]);
    call.botSpeaks();
    call.advance(4_000);
    call.media().observe({ kind: 'playback', report: finished });
    await call.stopDetection();

    expect(call.log).toContain('bye');
    expect(call.outcomes()?.ftc).toBe('abandoned');
    expect(call.end().data).toMatchObject({ outcome: 'completed', abandoned: true });
  });

  test('does not play it if the bot speaks in time', async () => {
    const call = await answeredCall({ request });
    call.greet();
    call.botSpeaks();
    call.advance(60_000);

    expect(call.log).not.toContain('play abandonedSound');
  });

  test('does not play it to a person who talks to somebody when detection decides late', async () => {
    const call = await answeredCall({ formula: 'ofcom', request });
    call.advance(2_500);
    call.botSpeaks();
    call.advance(500);
    call.amd('amd_human_detected', { elapsedMs: 3_000, pauseMs: 1_000, spanMs: 1_700 });
    await call.settle();

    expect(call.abandoned()).toBeDefined();
    expect(call.log).not.toContain('play abandonedSound');
    call.advance(60_000);
    expect(call.log).not.toContain('bye');
  });

  test('is not dialled if the sound cannot be loaded', async () => {
    const call = scriptCall({
      request,
      loadSound: async () => ({ ok: false, reason: 'There is no sound sorry' }),
    });
    await call.settle();

    expect(call.end().data).toMatchObject({
      reason: 'abandonedSound: There is no sound sorry',
    });
  });
});

describe('a call that no person answers', () => {
  test('is not abandoned if a machine answers', async () => {
    const call = await answeredCall();
    call.advance(3_000);
    call.amd('amd_machine_detected', { elapsedMs: 3_000 });

    expect(call.outcomes()).toEqual({ ftc: 'none', ofcom: 'none' });
  });

  test('is no longer abandoned if a beep corrects the verdict', async () => {
    const call = await answeredCall();
    call.greet();
    call.advance(2_000);
    call.amd('amd_tone_detected', { elapsedMs: 3_600, corrects: 'amd_human_detected' });
    call.remoteBye();
    await call.stopDetection();

    expect(call.outcomes()).toEqual({ ftc: 'none', ofcom: 'none' });
    expect(call.end().data.abandoned).toBeUndefined();
  });

  test('is not abandoned if it ends before the verdict', async () => {
    const call = await answeredCall();
    call.advance(400);
    call.remoteBye();
    await call.stopDetection();

    expect(call.outcomes()).toEqual({ ftc: 'none', ofcom: 'none' });
  });
});

test('calls without a rule set cost no step', async () => {
  const call = scriptCall({ request: { campaign: 'spring' } });
  await call.sent();
  await call.answer();
  call.amd('amd_human_detected', hello);
  call.advance(10_000);
  call.remoteBye();
  await call.settle();

  expect(call.steps.filter(({ person }) => person !== undefined)).toEqual([]);
});

test('an agent whose answer is being stored counts before a bot that spoke later', () => {
  const reach: Reach = {
    answerer: { clocks: { ftc: new Date(epoch), ofcom: new Date(epoch) } },
    agentReachedAt: new Date(epoch + 1_900),
    connectedAt: new Date(epoch + 2_100),
  };

  expect(outcomeOf(reach, 'ftc', new Date(epoch + 3_000))).toBe('connected');
});

test('an outcome is undecided while the two seconds run', () => {
  const clocks = { ftc: new Date(epoch + 500), ofcom: new Date(epoch) };
  const reach: Reach = { answerer: { clocks } };

  expect(outcomeOf(reach, 'ftc', new Date(epoch + 2_499))).toBeUndefined();
  expect(outcomeOf(reach, 'ftc', new Date(epoch + 2_500))).toBe('abandoned');
  expect(outcomeOf(reach, 'ofcom', new Date(epoch + 2_000))).toBe('abandoned');
  expect(outcomeOf({}, 'ftc', new Date(epoch))).toBeUndefined();
});
