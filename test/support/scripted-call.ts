// Plays one call on scripted ports. The test plays the roles of SIP, media and SQL, with a
// simulated clock.

import { createActor, SimulatedClock } from 'xstate';
import {
  type AcceptedCall,
  type DialoutRequest,
  defaultAmdTimers,
} from '../../src/calls/call-types.ts';
import type { CallEvent } from '../../src/calls/contract/call-event.ts';
import type { CallId } from '../../src/calls/contract/identity.ts';
import type { StoredLeg } from '../../src/calls/contract/stored-leg.ts';
import type { AmdEvent, AmdEventName } from '../../src/calls/detection/amd-event.ts';
import {
  type CallPorts,
  createCallLogic,
  createJournal,
} from '../../src/calls/life/call-actors.ts';
import type { CallQuality } from '../../src/calls/life/call-quality.ts';
import { type CallLimits, defaultCallLimits } from '../../src/calls/life/call-setup.ts';
import type { CallEnding, CallStep } from '../../src/calls/life/call-step.ts';
import type { AnswerResult, MediaCommand, MediaObserver } from '../../src/calls/media.ts';
import type {
  CallLeg,
  CallOutbox,
  LegFailure,
  LegObserver,
  PlaceRequest,
  RecordingPort,
  ReferEvent,
  SoundPort,
  StepResult,
} from '../../src/calls/ports.ts';
import type { Ruling } from '../../src/calls/rules/ruling.ts';
import type { NumberedStream, StreamSettings } from '../../src/calls/stream/stream.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { testSound } from './test-sound.ts';

export const epoch = Date.parse('2026-01-01T00:00:00.000Z');

export const storedLeg: StoredLeg = {
  engine: '127.0.0.1:9022',
  sipCallId: 'sip-call-id',
  transactionId: 'transaction-1',
  requestUri: 'sip:15550100@127.0.0.1',
};

export function acceptedCall(request: Partial<DialoutRequest> = {}, ruling?: Ruling): AcceptedCall {
  return {
    ...(ruling === undefined ? {} : { ruling }),
    callId: 'call-11111111-1111-4111-8111-111111111111' as CallId,
    sid: 'sid-1',
    conversationId: '22222222-2222-4222-8222-222222222222',
    botId: 'bot-1',
    accountId: 'account-1',
    appId: 'app-1',
    acceptedAt: new Date(epoch),
    request: {
      target: { kind: 'tel', number: '15550100' },
      caller: '15550199',
      notifyUrl: 'http://127.0.0.1:1/notify',
      ringTimeoutMs: 60_000,
      queueTimeoutMs: 300_000,
      trunk: 'sandbox',
      metadata: { campaign: 'spring' },
      machineDetection: 'detect',
      amd: { timers: defaultAmdTimers },
      ...request,
    },
  };
}

export const streamSettings: StreamSettings = {
  ...{ url: 'wss://bot.example/audio', secret: 's3cret', connect: 'answered', ordinal: 0 },
  ...{ accountSid: 'AC1', callSid: 'CA1', streamSid: 'MZ1', customParameters: {} },
};

export type ScriptOptions = {
  /** How the call sounded. Default: nothing was heard. `never`: the media doesn't say. */
  readonly quality?: CallQuality | 'never';
  readonly request?: Partial<DialoutRequest>;
  /** The rule set under which the call was permitted. By default, the account has no rules. */
  readonly ruling?: Ruling;
  readonly limits?: Partial<CallLimits>;
  /**
   * Stores the answer and returns the result. `commit` makes SQL hold the answer even if the result
   * says otherwise. Default: the answer is stored immediately.
   */
  readonly storeAnswer?: (commit: () => void) => Promise<StepResult>;
  /** Stores the answer of a second leg. Default: it is stored immediately. */
  readonly storeSecondLeg?: (commit: () => void) => Promise<StepResult>;
  /**
   * Stores the end and returns the result. `commit` makes SQL hold the end even if the result says
   * otherwise. Default: the end is stored immediately.
   */
  readonly storeEnd?: (commit: () => void) => Promise<StepResult>;
  /** Replaces the outbox of the script. */
  readonly outbox?: CallOutbox;
  readonly noMedia?: boolean;
  /** Called only for calls with a stream. Default: fixed settings. */
  readonly streamSettings?: (stream: NumberedStream) => Promise<StreamSettings>;
  /** Called only for calls with plans. Default: every sound exists. */
  readonly loadSound?: SoundPort['loadSound'];
  /** Called only for recordings with a key. Default: this gateway has no keys. */
  readonly recordings?: RecordingPort;
  readonly unusableAnswer?: boolean;
  /** Makes the SIP port throw, which the real one never does. */
  readonly brokenSip?: boolean;
};

const loadAnySound: SoundPort['loadSound'] = async (_accountId, name) => ({
  ok: true,
  sound: testSound(name, new Uint8Array(8_000)),
});

/** Plays one call. `now` follows the simulated clock. */
export function scriptCall(options: ScriptOptions = {}) {
  const clock = new SimulatedClock();
  const now = () => new Date(epoch + clock.now());
  const log: string[] = [];
  const sql = scriptSql(options, log);
  let leg: LegObserver | undefined;
  let media: MediaObserver | undefined;
  let placed: PlaceRequest | undefined;
  const commands: MediaCommand[] = [];
  let referral: ((event: ReferEvent) => void) | undefined;

  const secondLegs = scriptSecondLegs(log);
  const partner = {
    offerSdp: 'second offer',
    applyAnswer: (): AnswerResult => 'applied',
    answerReoffer: () => 'second answer',
    offerAgain: () => 'further offer',
    acceptsKeys: () => true,
    send: () => undefined,
    bridge: (phase: string) => void log.push(`bridge ${phase}`),
    close: () => void log.push('second media closed'),
  };
  const ports: CallPorts = {
    transfers: {
      sip: {
        offerFor: () => ({ codecs: ['PCMU'], encryption: 'rtp' }),
        keysFor: () => 'rtp',
        place: (...given) => ports.sip.place(...given),
        endOrphan: async () => 'gone',
      },
      clock: { now },
      logger: silentLogger,
      admission: { admit: async () => ({ ok: true }), giveBack: () => undefined },
      storeLeg: async (call, secondLeg) =>
        await ports.outbox.append(call, { events: [], secondLegs: [secondLeg] }).then(
          (result) => result === 'stored',
          () => false,
        ),
    },
    outbox: options.outbox ?? sql.outbox,
    clock: { now },
    logger: silentLogger,
    sounds: { loadSound: options.loadSound ?? loadAnySound },
    ...(options.recordings === undefined ? {} : { recordings: options.recordings }),
    streams: {
      settingsOf: async (_call, stream) =>
        (await options.streamSettings?.(stream)) ?? { ...streamSettings, ordinal: stream.ordinal },
    },
    media: {
      open: (_callId, observer) => {
        media = observer;
        if (options.noMedia === true) return Promise.resolve(undefined);
        return Promise.resolve({
          offerSdp: 'offer',
          applyAnswer: (_sdp, phase) => {
            log.push(`media ${phase}`);
            return options.unusableAnswer === true ? 'unusable' : 'applied';
          },
          acceptsKeys: () => true,
          send: (command) => {
            commands.push(command);
            const line = lineOf(command);
            if (line !== undefined) log.push(line);
            // As from the worker, the reply comes later.
            const { quality } = options;
            if (command.kind === 'requestQuality' && quality !== 'never')
              queueMicrotask(() => observer.observe({ kind: 'quality', quality }));
          },
          answerReoffer: () => 'answer',
          offerAgain: () => 'offer',
          openPartner: async () => partner,
          close: () => log.push('media closed'),
        });
      },
    },
    sip: {
      offerFor: () => ({ codecs: ['PCMU', 'PCMA'], encryption: 'rtp' }),
      keysFor: () => 'rtp',
      place: (request, observer) => {
        if (options.brokenSip === true) throw new Error('a defect');
        if (request.legId !== undefined) return secondLegs.place(observer);
        placed = request;
        leg = observer;
        return {
          cancel: () => log.push('cancel'),
          acknowledge: () => log.push('ack'),
          hangUp: () => log.push('bye'),
          refer: (_request, observe) => {
            log.push('refer');
            referral = observe;
          },
          press: async () => true,
          released: Promise.resolve(),
        };
      },
      endOrphan: () => Promise.resolve('gone'),
    },
  };
  const logic = createCallLogic(ports);
  const actor = createActor(logic, {
    clock,
    input: {
      call: acceptedCall(options.request, options.ruling),
      limits: { ...defaultCallLimits, ...options.limits },
      clock: { now },
      journal: createJournal(ports, acceptedCall(options.request, options.ruling)),
    },
  });
  actor.start();

  const present = <Value>(value: Value | undefined, what: string): Value => {
    if (value === undefined) throw new Error(`${what} is not there yet`);
    return value;
  };
  return {
    actor,
    log,
    /** The steps in the order in which the state machine handed them to the outbox. */
    steps: sql.steps,
    /** The events that SQL holds, in order. */
    stored: sql.stored,
    now,
    placed: () => present(placed, 'the INVITE'),
    plans: () => commands.findLast((command) => command.kind === 'detect')?.plans,
    /** What the media was told to record. */
    recorded: () => commands.find(startsRecording)?.recording,
    leg: () => present(leg, 'the leg'),
    /** Returns the observer of the last REFER. */
    referral: () => present(referral, 'the REFER'),
    secondLeg: () => present(secondLegs.observer(), 'the second leg'),
    media: () => present(media, 'the media session'),
    /** Lets promises settle. That's enough, because nothing here waits for real time. */
    settle: () => new Promise<void>((resolve) => setImmediate(resolve)),
    advance: (ms: number) => clock.increment(ms),
    state: () => actor.getSnapshot().value,
    types: () => sql.stored.map((event) => event.type),
    async sent() {
      await this.settle();
      this.leg().observe({ kind: 'sent', gateway: 'gw', leg: storedLeg, at: now() });
    },
    ring(status = 180, sdp?: string, ringingLeg?: StoredLeg) {
      const reason = status === 183 ? 'Session Progress' : 'Ringing';
      this.leg().observe({
        kind: 'provisional',
        status,
        reason,
        at: now(),
        ...(sdp === undefined ? {} : { sdp }),
        ...(ringingLeg === undefined ? {} : { leg: ringingLeg }),
      });
    },
    async answer() {
      const leg = { ...storedLeg, dialogId: 'dialog-1' };
      this.leg().observe({ kind: 'answered', sdp: 'sdp', leg, at: now() });
      await this.settle();
    },
    amd(event: AmdEventName, more: Partial<AmdEvent> = {}) {
      this.media().observe({
        kind: 'amd',
        amd: { event, reason: 'scripted', elapsedMs: 100, ...more },
      });
    },
    fail(failure: Partial<LegFailure>) {
      const busy: LegFailure = { at: now(), reason: 'Busy Here', kind: 'response' };
      this.leg().observe({ kind: 'failed', failure: { ...busy, ...failure } });
    },
    remoteBye() {
      this.leg().observe({ kind: 'ended', end: { at: now(), by: 'remote', reason: 'BYE' } });
    },
    endings: () => sql.endings(),
    end: () => present(sql.endings()[0], 'the end').event,
  };
}

type StartRecording = Extract<MediaCommand, { readonly action: 'start' }>;

function startsRecording(command: MediaCommand): command is StartRecording {
  return command.kind === 'record' && command.action === 'start';
}

/** @returns undefined for a command that no test looks at */
function lineOf(command: MediaCommand): string | undefined {
  switch (command.kind) {
    case 'detect':
      return 'startDetection';
    case 'stopDetection':
    case 'stopStream':
      return `${command.kind} ${command.reason}`;
    case 'stream': {
      const { ordinal } = command.settings;
      if (command.phase === 'ringing') return 'prepareStream';
      return ordinal === 0 ? 'answerStream' : `answerStream ${ordinal}`;
    }
    case 'play':
      return `play ${command.playback.playbackId}`;
    case 'press':
      return `press ${command.keys.commandId}`;
    case 'stopPlayback':
      return 'stopPlayback';
    case 'record':
      return `record ${command.action}`;
    case 'requestEnvelope':
    case 'requestQuality':
    case 'gateStream':
    case 'sendDigit':
    case 'reportTransferFailure':
      return undefined;
  }
}

/** Plays the second legs of successive transfers, and logs the commands to them. */
function scriptSecondLegs(log: string[]) {
  let last: LegObserver | undefined;
  return {
    observer: () => last,
    place(observer: LegObserver): CallLeg {
      last = observer;
      return {
        cancel: () => void log.push('second cancel'),
        acknowledge: () => void log.push('second ack'),
        hangUp: () => void log.push('second bye'),
        refer: () => undefined,
        press: async () => true,
        released: new Promise(() => undefined),
      };
    },
  };
}

/** Simulates SQL for one call and records the steps. */
function scriptSql(options: ScriptOptions, log: string[]) {
  const steps: CallStep[] = [];
  const stored: CallEvent[] = [];
  let isAnswered = false;
  let hasEnded = false;
  /** Returns a function that commits a step, once. SQL accepts nothing after the end. */
  const commitOf = (step: CallStep) => {
    let isStored = false;
    return () => {
      if (isStored || hasEnded) return;
      isStored = true;
      isAnswered ||= step.answeredAt !== undefined;
      hasEnded = step.ending !== undefined;
      const events = [...step.events, ...eventsOfEnding(step.ending, isAnswered)];
      stored.push(...events.filter(({ id }) => !stored.some((known) => known.id === id)));
    };
  };
  const scriptOf = ({ ending, answeredAt, secondLegs }: CallStep) => {
    if (ending !== undefined) return options.storeEnd;
    if (secondLegs !== undefined) return options.storeSecondLeg;
    return answeredAt === undefined ? undefined : options.storeAnswer;
  };
  const outbox: CallOutbox = {
    append: (_call, step) => {
      steps.push(step);
      log.push(`store ${nameOf(step)}`);
      const commit = commitOf(step);
      const script = scriptOf(step);
      if (script !== undefined) {
        return script(commit).then((result) => {
          if (result === 'stored') commit();
          return result;
        });
      }
      commit();
      return Promise.resolve('stored');
    },
  };
  const endings = () => steps.flatMap(({ ending }) => (ending === undefined ? [] : [ending]));
  return { outbox, steps, stored, endings };
}

function nameOf({ ending, answeredAt, ringingAt, leg, events }: CallStep): string {
  if (ending !== undefined) return 'end';
  if (answeredAt !== undefined) return 'answer';
  if (ringingAt !== undefined) return 'ringing';
  return leg === undefined ? (events[0]?.type ?? 'nothing') : 'INVITE';
}

function eventsOfEnding(ending: CallEnding | undefined, isAnswered: boolean): readonly CallEvent[] {
  if (ending === undefined) return [];
  return isAnswered ? (ending.ifAnswered ?? [ending.event]) : [ending.event];
}
