// Plays one call with random events in random order, but keeps to the ports' contracts: a leg goes
// through its states in order, and detection follows its grammar. A seed always gives the same
// call.

import type { DialoutRequest } from '../../src/calls/call-types.ts';
import type { SelectedEventType } from '../../src/calls/contract/notify-events.ts';
import type { AmdEvent, AmdEventName } from '../../src/calls/detection/amd-event.ts';
import type { RequestedStream, StreamCounts, StreamReport } from '../../src/calls/stream/stream.ts';
import {
  type TransferPlan,
  transferFallbacks,
  transferStarts,
} from '../../src/calls/transfer/transfer.ts';
import { type ScriptOptions, scriptCall, storedLeg } from './scripted-call.ts';

/** The mulberry32 generator, which is small and gives the same numbers on every machine. */
export function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/**
 * Longer than all timers together: ring time-out, storing the answer, maximum duration, closing and
 * recording.
 */
const everythingIsOverMs = 10_000_000;

const detections: readonly (readonly AmdEventName[])[] = [
  ['amd_human_detected', 'amd_stopped'],
  // Here the beep corrects the verdict `human`.
  ['amd_human_detected', 'amd_tone_detected', 'amd_stopped'],
  ['amd_machine_detected', 'amd_machine_stopped_speaking', 'amd_tone_detected', 'amd_stopped'],
  ['amd_no_speech_detected', 'amd_stopped'],
  ['amd_error', 'amd_stopped'],
  ['amd_machine_detected', 'amd_error', 'amd_stopped'],
];
const modes: readonly DialoutRequest['machineDetection'][] = ['disabled', 'detect', 'disconnect'];

const bridgePlan: Omit<TransferPlan, 'on' | 'onFailure' | 'mode'> = {
  ...{ to: { kind: 'tel', number: '15550177' }, timeoutMs: 10_000 },
  ...{ caller: '15550199', keepStream: false },
};

const stream: RequestedStream = {
  ...{ url: 'wss://bot.example/audio', connect: 'answered', parameters: {} },
};
const counts: StreamCounts = {
  ...{ connections: 1, playedMs: 500, droppedMs: 0, underruns: 0 },
  ...{ unheardMs: 0, ignoredMessages: 0 },
};
const streamReports: readonly StreamReport[] = [
  { kind: 'opened', connection: 1, openMs: 12 },
  { kind: 'opened', connection: 2, openMs: 12 },
  { kind: 'broken', reason: 'ECONNREFUSED' },
  { kind: 'stopped', reason: 'replaced', counts },
  { kind: 'botLeft', counts },
  { kind: 'lost', reason: 'ECONNREFUSED' },
];

const secondLeg = { ...storedLeg, sipCallId: 'second-call-id', transactionId: 'transaction-2' };

/** Makes random events happen on the second leg, in the order of a leg's life. */
function randomSecondLeg(call: ReturnType<typeof scriptCall>, random: () => number) {
  let phase: 'none' | 'inviting' | 'answered' | 'over' = 'none';
  const isGivenUp = () => call.log.includes('second cancel') || call.log.includes('second bye');
  const happenings = {
    none: () => {
      const observer = call.secondLeg();
      phase = 'inviting';
      observer.observe({ kind: 'sent', gateway: 'gw', leg: secondLeg, at: call.now() });
    },
    inviting: () => {
      const observer = call.secondLeg();
      const at = call.now();
      const chance = random();
      if (chance < 0.3)
        observer.observe({ kind: 'provisional', status: 180, reason: 'Ringing', at });
      else if (chance < 0.5) {
        phase = 'over';
        const failure = { at, sipStatus: 486, reason: 'Busy Here', kind: 'response' } as const;
        observer.observe({ kind: 'failed', failure });
      } else {
        phase = 'answered';
        const dialog = { ...secondLeg, dialogId: 'dialog-2' };
        observer.observe({ kind: 'answered', sdp: 'sdp', leg: dialog, at });
      }
    },
    answered: () => {
      if (random() < 0.6) return;
      phase = 'over';
      const end = { at: call.now(), by: 'remote', reason: 'BYE' } as const;
      call.secondLeg().observe({ kind: 'ended', end });
    },
    over: () => undefined,
  };
  return {
    step(): void {
      if (isGivenUp()) phase = 'over';
      happenings[phase]();
    },
    /** Whether the leg is acknowledged and not hung up. */
    isUp: (): boolean => phase === 'answered' && !isGivenUp() && call.log.includes('second ack'),
  };
}

/**
 * Makes the far end report on a REFER: progress before and after its answer, and one result.
 * `isUp`: whether the leg of the REFER is up.
 */
function randomReferral(
  call: ReturnType<typeof scriptCall>,
  random: () => number,
  isUp: () => boolean,
) {
  let phase: 'asking' | 'asked' | 'over' = 'asking';
  const end = (): void => {
    phase = 'over';
    const failure = {
      at: call.now(),
      sipStatus: 486,
      reason: 'Busy Here',
      kind: 'response',
    } as const;
    const chance = random();
    if (chance < 0.4) call.referral()({ kind: 'taken over' });
    else if (chance < 0.7) call.referral()({ kind: 'failed', failure });
    else
      call.referral()({
        kind: 'unheard',
        reason: 'The far end reported nothing about the referral',
      });
  };
  return {
    step(): void {
      if (!call.log.includes('refer') || !isUp() || phase === 'over') return;
      if (random() < 0.3) {
        end();
        return;
      }
      call.referral()({ kind: 'progress', sipStatus: phase === 'asking' ? 202 : 180 });
      phase = 'asked';
    },
  };
}

/**
 * Makes bot streams begin, end and fail, whether they come from commands or the request. A replaced
 * stream may still report late events.
 */
function randomStreams(call: ReturnType<typeof scriptCall>, random: () => number) {
  let commands = 0;
  return [
    () => {
      if (random() < 0.7) return;
      commands += 1;
      const wanted = random() < 0.7 ? { stream } : {};
      call.actor.send({ type: 'command.stream', commandId: `stream-${commands}`, ...wanted });
    },
    () => {
      const ordinal = Math.floor(random() * 4);
      if (!call.log.includes(ordinal === 0 ? 'answerStream' : `answerStream ${ordinal}`)) return;
      const report = streamReports[Math.floor(random() * streamReports.length)] as StreamReport;
      call.media().observe({ kind: 'stream', ordinal, report });
    },
  ];
}

type RandomCallOptions = Pick<ScriptOptions, 'outbox'> & {
  /** Whether the request may have a stream, and commands begin and end streams. Default: false. */
  readonly hasStreams?: boolean;
  /** The events that the request selects. Default: an empty list. */
  readonly notifyEvents?: readonly SelectedEventType[];
};

export function randomCall(
  random: () => number,
  { hasStreams = false, notifyEvents = [], ...options }: RandomCallOptions = {},
) {
  const pick = <Value>(values: readonly Value[]): Value =>
    values[Math.floor(random() * values.length)] as Value;
  const storeAnswer = pick(['at once', 'fails', 'never', 'later', 'later', 'not owned'] as const);
  // SQL may hold an answer even if the result of storing it is never reported.
  const isCommitted = random() < 0.5;
  const machineDetection = pick(modes);
  const bridges = random() < 0.6;
  const bridge: TransferPlan = {
    ...bridgePlan,
    mode: pick(['bridge', 'bridge', 'refer']),
    on: pick(transferStarts),
    onFailure: pick(transferFallbacks),
  };
  let stored = () => {};
  const call = scriptCall({
    ...options,
    request: {
      ...{ machineDetection, ringTimeoutMs: 20_000, notifyEvents },
      ...(bridges ? { bridge } : {}),
      ...(hasStreams && random() < 0.5 ? { stream } : {}),
    },
    noMedia: random() < 0.05,
    unusableAnswer: random() < 0.1,
    storeAnswer: (commit) => {
      if (storeAnswer === 'at once') return Promise.resolve('stored');
      if (storeAnswer === 'not owned') return Promise.resolve('not owned');
      if (storeAnswer !== 'later' && isCommitted) commit();
      if (storeAnswer === 'fails') return Promise.reject(new Error('SQL is unreachable'));
      return new Promise((resolve) => {
        if (storeAnswer === 'later') stored = () => resolve('stored');
      });
    },
  });
  let leg: 'idle' | 'inviting' | 'answered' | 'over' = 'idle';
  const second = randomSecondLeg(call, random);
  const amd = [...pick(detections)];
  const verdict = amd[0];
  const legIs = (): typeof leg => {
    // The leg ends immediately after CANCEL and BYE.
    if (leg !== 'idle' && (call.log.includes('cancel') || call.log.includes('bye'))) leg = 'over';
    return leg;
  };
  const send = async (): Promise<void> => {
    if (leg !== 'idle') return;
    leg = 'inviting';
    await call.sent();
  };
  const referral = randomReferral(call, random, () => legIs() === 'answered');
  const transfer = () => (bridge.mode === 'refer' ? referral : second).step();
  const happenings: readonly (() => unknown)[] = [
    send,
    send,
    () => legIs() === 'inviting' && call.ring(pick([180, 183]), pick([undefined, 'sdp'])),
    async () => {
      if (legIs() !== 'inviting') return;
      leg = 'answered';
      await call.answer();
    },
    () => {
      if (legIs() !== 'inviting' || random() < 0.7) return;
      leg = 'over';
      call.fail({ sipStatus: pick([404, 486, 503]) });
    },
    () => {
      if (legIs() !== 'answered' || random() < 0.7) return;
      leg = 'over';
      call.remoteBye();
    },
    () => {
      const event = call.log.includes('startDetection') ? amd.shift() : undefined;
      if (event !== undefined) call.amd(event, { elapsedMs: 20, ...correction(event, verdict) });
    },
    () =>
      legIs() === 'answered' && call.leg().observe({ kind: 'dtmf', digit: '1', durationMs: 80 }),
    () => {
      if (!call.log.includes('startDetection')) return;
      const playback = { playbackId: 'voicemail', source: 'voicemail', sound: 'sound:a' } as const;
      const finished = {
        kind: 'finished',
        reason: pick<'done' | 'stopped'>(['done', 'stopped']),
        playedMs: 20,
      } as const;
      const report = random() < 0.5 ? { kind: 'started' as const, sha256: '0a' } : finished;
      call.media().observe({ kind: 'playback', report: { ...playback, ...report } });
    },
    () => {
      if (random() < 0.85 || !call.log.includes('startDetection')) return;
      const outcome = pick(['voicemail-left', 'machine'] as const);
      call.media().observe({ kind: 'plan', report: { kind: 'over', outcome } });
    },
    () => random() < 0.1 && call.media().observe({ kind: 'inactive' }),
    () => random() < 0.1 && call.media().observe({ kind: 'failed', reason: 'media worker died' }),
    () =>
      random() < 0.2 && call.actor.send({ type: 'command.end', command: { by: 'application' } }),
    () => stored(),
    ...[transfer, transfer, transfer, transfer],
    ...(hasStreams ? randomStreams(call, random) : []),
    () => call.advance(Math.floor(random() * 3_000)),
  ];
  return {
    call,
    leg: legIs,
    /** Returns the Call-IDs of the far ends that consider themselves in the call. */
    talking: (): readonly string[] => [
      ...(legIs() === 'answered' && call.log.includes('ack') ? [storedLeg.sipCallId] : []),
      ...(second.isUp() ? [secondLeg.sipCallId] : []),
    ],
    isOver: () => call.actor.getSnapshot().status !== 'active',
    /** Makes one more random event happen. */
    async step(): Promise<void> {
      try {
        await pick(happenings)();
      } catch (error) {
        // The media session or leg doesn't exist yet.
        if (!/is not there yet/.test(String(error))) throw error;
      }
      if (random() < 0.5) await call.settle();
    },
    /** Lets time pass without any messages. That alone must end the call. */
    async finish(): Promise<void> {
      for (let round = 0; round < 6; round += 1) {
        call.advance(everythingIsOverMs);
        await call.settle();
      }
    },
  };
}

function correction(event: AmdEventName, verdict: AmdEventName | undefined): Partial<AmdEvent> {
  const isCorrection = event === 'amd_tone_detected' && verdict === 'amd_human_detected';
  return isCorrection ? { corrects: verdict } : {};
}
