// Opens the parts that handle calls. These parts end the calls that an earlier process left behind,
// accept and queue new calls, claim queued calls ("taking" them), and end this process's own calls.

import { setTimeout as pause } from 'node:timers/promises';
import type { StreamServices } from '../api/services.ts';
import type { AcceptedCall } from '../calls/call-types.ts';
import type { EventOf } from '../calls/contract/call-event.ts';
import type { CallId } from '../calls/contract/identity.ts';
import type {
  CommandRouting,
  Intake,
  RoutePlanner,
  Submission,
  Suppressing,
  TrunkLimits,
} from '../calls/dialout-ports.ts';
import type { NoteCommand } from '../calls/life/call-commands.ts';
import { progressOfAccepted } from '../calls/life/call-events.ts';
import { endOfRefusal } from '../calls/life/call-outcome.ts';
import { CallRegistry } from '../calls/life/call-registry.ts';
import { defaultCallLimits } from '../calls/life/call-setup.ts';
import type { SecondLeg } from '../calls/life/call-step.ts';
import type { MediaPort } from '../calls/media.ts';
import type { CallOutbox, RecordingPort, SipPort } from '../calls/ports.ts';
import { suppressedAddressOf } from '../calls/rules/suppression.ts';
import { CallTaking } from '../dialout/call-taking.ts';
import { CampaignWatch } from '../dialout/campaign-watch.ts';
import { createEndRecorder, type EndRecorder } from '../dialout/end-recorder.ts';
import { type GuardedSip, guardSip } from '../dialout/guarded-sip.ts';
import { createIntake, type IntakePorts } from '../dialout/intake.ts';
import { SecondLegs } from '../dialout/second-legs.ts';
import { createSuppressing } from '../dialout/suppressing.ts';
import { createCampaignAlertPublisher } from '../events/alerts.ts';
import { eventsOfCall } from '../events/call-stream.ts';
import { sendDialHint, serveDialHints } from '../events/hints.ts';
import { isAway } from '../events/nats-away.ts';
import { sendCancellation, serveCancellations } from '../events/node-requests.ts';
import { streamNames } from '../events/subjects.ts';
import type { Metrics } from '../http/metrics.ts';
import { inBackground } from '../lib/in-background.ts';
import { traceHeadersOf } from '../lib/trace-context.ts';
import { owedFor } from '../notifier/owed.ts';
import type { Recipient } from '../notifier/recipients.ts';
import { Recovery } from '../recovery/recovery.ts';
import { reviewCampaigns } from '../store/rules/campaign-review.ts';
import { type Commands, openCommands } from './commands.ts';
import { createDrain } from './drain.ts';
import type { Environment } from './environment.ts';
import { openEventRepair } from './event-repair.ts';
import { openLateNodes } from './late-nodes.ts';
import { type OutboxNeeds, type OutboxParts, openOutbox } from './outbox.ts';
import type { Sounds } from './sounds.ts';
import { createStreamPort } from './streams.ts';
import { type Sweeps, startSweeps } from './sweeps.ts';
import { tracedIntake } from './tracing.ts';

export type Calls = {
  readonly registry: CallRegistry;
  readonly intake: Intake;
  readonly commands: CommandRouting;
  readonly suppressing: Suppressing;
  /**
   * Ends any calls that an earlier process left behind, then starts taking queued calls. This must
   * be the last step of the start, because a process that fails to start must not ring anybody.
   */
  startTaking(): Promise<void>;
  /** Ends this process's calls. See `Drain` in `drain.ts`. */
  drain(drainMs: number, force: AbortSignal): Promise<void>;
  isDraining(): boolean;
  /**
   * Waits until all events have been stored and published, all BYEs have been answered, and every
   * pending notification has been sent or postponed. Gives up after `timeoutMs`.
   */
  settle(timeoutMs: number): Promise<void>;
};

/** The parts that must be open before `openCalls`. */
export type OpenParts = OutboxNeeds & {
  readonly sounds: Sounds;
  /** Undefined if recordings can't be encrypted. */
  readonly recordings?: RecordingPort;
  readonly streams: StreamServices;
  readonly metrics: Metrics;
};

type Parts = OpenParts & {
  readonly sip: SipPort;
  readonly limitsOf: (trunk: string) => TrunkLimits | undefined;
  readonly routes: RoutePlanner;
  readonly media: MediaPort;
  /** Called once all of the call's legs have ended. */
  readonly onReleased: (callId: CallId) => void;
  /** Called once a failure of a recording has been stored. */
  readonly onRecordingFailed: (event: EventOf<'recording-failed'>) => void;
  /** Adds a command to the call's capture. */
  readonly note: NoteCommand;
};

/** At most this many requests may wait to be dialled. One node dials about that many per minute. */
const maxQueued = 10_000;
/**
 * How long a node may keep hanging up after it has lost its lease. It has to hang up its own legs,
 * because other nodes may not know about some of them. Then the process ends.
 */
const lostLeaseTimeoutMs = 3_000;
const settlePollMs = 25;

export function openCalls(environment: Environment, parts: Parts): Calls {
  const { config, logger, clock, closers } = environment;
  const { storage, metrics } = parts;
  const { lease } = parts.node;
  const { suppressionCheck: suppressions } = storage;
  const sip = guardSip(parts.sip, { mayPlace: () => lease.isHeld, suppressions, clock, logger });
  const secondLegs = openSecondLegs(environment, parts);
  const out = openOutbox(environment, {
    ...parts,
    untilReleased: (callId) => sip.untilReleased(callId),
    // A later INVITE is refused anyway, so only phones that already ring are left.
    onOptedOut: ({ accountId, request: { target } }) => {
      const cancelled = suppressing.cancelSuppressed(accountId, suppressedAddressOf(target));
      inBackground(cancelled, logger, 'cancelling calls to a person who opted out');
    },
  });
  const registry = new CallRegistry(
    {
      ...{ outbox: out.outbox, clock, logger, sip, media: parts.media },
      streams: createStreamPort(storage),
      sounds: parts.sounds.port,
      ...(parts.recordings === undefined ? {} : { recordings: parts.recordings }),
      transfers: {
        ...{ sip, clock, logger, admission: secondLegs },
        storeLeg: (call, leg) => storeSecondLeg(out.outbox, call, leg),
      },
    },
    {
      limits: { ...defaultCallLimits, maxDurationMs: config.calls.maxDurationMs },
      maxConcurrent: config.calls.maxConcurrent,
    },
  );
  const suppressing = openSuppressing(environment, parts, registry);
  // A call that ends without a machine says nothing about its caller ID: no carrier was asked, or
  // its response is unknown.
  const ends = createEndRecorder(out.outbox, (end, { request: { trunk } }) =>
    metrics.callEnded(end, { trunk }),
  );
  const commands = openCommands(environment, parts, { registry, ends });
  const recovery = openRecovery(environment, parts, { sip, out, ends });
  const taking = openTaking(environment, parts, { registry, ends, recovery, out });
  connectObservers({ sip, registry }, { taking, secondLegs, commands, out, metrics });
  closers.add('recovery', () => recovery.stop());
  const work = createWork(environment, parts, { recovery, taking, commands, relay: out.relay });
  const { drain, isDraining } = createDrain(registry, work.stop);
  const intake = openIntake(environment, parts, { taking, work, out, isStopping: isDraining });
  parts.node.onLost(() => {
    logger.fatal('this node lost its lease for good; another node takes over its calls');
    registry.discardAll();
    const error = new Error('the lease of this node is lost');
    const end = (): void => environment.onFatal(error);
    sip.idle(lostLeaseTimeoutMs).then(end, end);
  });
  // This only matters if a later part fails to start. During a shutdown, the calls have already
  // ended by now.
  closers.add('calls', () => drain(0, AbortSignal.abort()));
  return {
    registry,
    startTaking: work.start,
    intake,
    commands: commands.routing,
    suppressing,
    ...{ drain, isDraining },
    settle: (timeoutMs) => settle(out, parts, sip, timeoutMs),
  };
}

/**
 * Connects the SIP port and the registry to the parts that need to know when calls and legs end. We
 * create these parts later, so we can't pass them to the constructors.
 */
function connectObservers(
  { sip, registry }: { readonly sip: GuardedSip; readonly registry: CallRegistry },
  {
    taking,
    secondLegs,
    commands,
    out,
    metrics,
  }: {
    readonly taking: CallTaking;
    readonly secondLegs: SecondLegs;
    readonly commands: Commands;
    readonly out: OutboxParts;
    readonly metrics: Metrics;
  },
): void {
  sip.watch({
    onPlaced: (legId) => taking.onPlaced(legId),
    onReleased: (legId) => {
      taking.onReleased(legId);
      secondLegs.giveBack(legId);
    },
    onOffTheWire: (callId) => out.noteLegsGone(callId),
  });
  registry.onEnded((callId, { end, quality }, { request }) => {
    taking.onEnded(callId);
    commands.onEnded(callId);
    out.machineEnded(callId);
    if (end !== undefined) metrics.callEnded(end, { ...request, mos: quality?.mos });
  });
}

function openSuppressing(
  { config, logger, closers }: Environment,
  { storage, events: { connection } }: Parts,
  registry: CallRegistry,
): Suppressing {
  const { ownerId } = config;
  const suppressing = createSuppressing({
    ...{ store: storage.suppressions, calls: storage.suppressedCalls, registry, ownerId },
    askOwner: (owner, callIds) => sendCancellation(connection, owner, callIds),
  });
  const cancel = (callIds: readonly CallId[]): void => suppressing.cancelHere(callIds);
  const serving = serveCancellations(connection, ownerId, cancel, logger);
  closers.add('cancellations', () => serving.stop());
  return suppressing;
}

function openSecondLegs({ clock, logger }: Environment, parts: Parts): SecondLegs {
  const { storage, limitsOf } = parts;
  return new SecondLegs({
    ...{ takes: storage.secondLegTakes, trunks: storage.takes, limitsOf, clock, logger },
    apps: storage.apps,
    suppressions: storage.suppressionCheck,
  });
}

/**
 * Stores the call's second leg.
 * @returns false if the call has ended, another process owns it, or the outbox failed
 */
async function storeSecondLeg(
  outbox: CallOutbox,
  call: AcceptedCall,
  leg: SecondLeg,
): Promise<boolean> {
  try {
    return (await outbox.append(call, { events: [], secondLegs: [leg] })) === 'stored';
  } catch {
    // The outbox is full or stopped. It has already logged that.
    return false;
  }
}

function openRecovery(
  { config, clock, logger }: Environment,
  { storage: { ledger }, events: { connection } }: Parts,
  {
    sip,
    out,
    ends,
  }: { readonly sip: GuardedSip; readonly out: OutboxParts; readonly ends: EndRecorder },
): Recovery {
  return new Recovery(
    {
      ...{ ledger, sip, ends, clock, logger },
      outbox: out.outbox,
      publish: (events) => out.publisher.publish(events),
      settle: (callId) => out.settle(callId),
      noteLegsGone: (callId) => out.noteLegsGone(callId),
      // If the database has been restored from a backup, the stream may contain events that the
      // database lacks. But a call must not wait for its end until a stream is back.
      eventsOnStream: async (call) => {
        const { calls } = streamNames(connection.prefix);
        if (!connection.connected() || connection.streams.isAway(calls)) return [];
        return await eventsOfCall(connection, call).catch((error: unknown) => {
          if (!isAway(error)) throw error;
          logger.warn({ err: error, callId: call.callId }, 'cannot read the events of a call');
          return [];
        });
      },
      underWay: () => sip.onTheWire(),
      isUnderWay: (callId) => out.holds(callId),
    },
    config.ownerId,
  );
}

function openTaking(
  { clock, logger, onCallStarted }: Environment,
  { storage, limitsOf, node, metrics, events: { connection } }: Parts,
  {
    registry,
    ends,
    recovery,
    out,
  }: {
    readonly registry: CallRegistry;
    readonly ends: EndRecorder;
    readonly recovery: Recovery;
    readonly out: OutboxParts;
  },
): CallTaking {
  const campaigns = new CampaignWatch({
    review: (now) => reviewCampaigns(storage.database.pool, now),
    publish: createCampaignAlertPublisher(connection),
    onHeld: (count) => metrics.campaignsHeld(count),
    now: () => clock.now(),
    logger,
  });
  return new CallTaking({
    takes: storage.takes,
    limitsOf,
    room: () => registry.freePlaces,
    mayTake: () => node.lease.mayTake,
    start: (call, queued, turn) => {
      onCallStarted();
      out.begin(call, queued);
      registry.start(call, turn);
    },
    refuse: async (call, queued, refusal) => {
      const end = endOfRefusal(refusal, clock.now());
      out.begin(call, queued);
      await ends.recordClaimed(progressOfAccepted(call), end).finally(() => {
        out.machineEnded(call.callId);
      });
    },
    // A call's last events may still be on their way to the database after its state machine has
    // finished.
    isHere: (callId) => registry.has(callId) || out.holds(callId),
    here: () => registry.ids(),
    endUnknown: (callIds) => recovery.endOwn(callIds),
    ends,
    hint: (source) => sendDialHint(connection, source),
    reviewCampaigns: () => campaigns.review(),
    clock,
    logger,
  });
}

/**
 * Implements `Calls.settle`. We wait for the responses to the last BYEs too. Otherwise the next
 * process would send these BYEs again, because it can't know that they were answered.
 */
async function settle(
  out: OutboxParts,
  parts: Parts,
  sip: GuardedSip,
  timeoutMs: number,
): Promise<void> {
  const { connection } = parts.events;
  const deadlineMs = performance.now() + timeoutMs;
  while (performance.now() < deadlineMs) {
    const areEventsOut = out.isIdle() || (out.outbox.size() === 0 && !connection.connected());
    const areLegsGone = sip.onTheWire().length === 0;
    if (areEventsOut && areLegsGone && !(await parts.notifier.isSending())) return;
    await pause(settlePollMs);
  }
}

function openIntake(
  { config, clock, logger, tracing }: Environment,
  parts: Parts,
  {
    taking,
    work,
    out,
    isStopping,
  }: {
    readonly taking: CallTaking;
    readonly work: Pick<Work, 'wake'>;
    readonly out: OutboxParts;
    readonly isStopping: () => boolean;
  },
): Intake {
  const { storage, limitsOf, notifier } = parts;
  const { ledger } = storage;
  const onStored: IntakePorts['onStored'] = (event, submission) => {
    notifier.recipients.remember(event.callId, recipientOf(submission));
    out.remember(event.callId, submission.request);
    out.relay.send([event]);
    if (event.data.notificationSequence !== undefined) notifier.pollForDue();
  };
  const intake = createIntake(
    {
      ...{ ledger, taking, limitsOf, onStored, isStopping, clock, logger },
      // We don't lease the call's notification queue here, because `pollForDue` makes the poll find
      // it.
      queuedNotification: (call, queued) => owedFor(call, queued, () => false),
    },
    { maxQueued, queueTimeoutMs: config.calls.queueTimeoutMs },
  );
  // Wake the sweep even if the request has failed, because the call may have been stored anyway.
  const waking: Intake = {
    submit: (submission) => intake.submit(submission).finally(() => work.wake()),
  };
  return tracedIntake(waking, tracing);
}

function recipientOf({ appId, accountId, request, notifyHeaders }: Submission): Recipient {
  const { notifyUrl } = request;
  const trace = traceHeadersOf(request);
  return {
    appId,
    accountId,
    ...(trace === undefined ? {} : { trace }),
    ...(notifyUrl === undefined ? {} : { notifyUrl }),
    ...(notifyHeaders === undefined ? {} : { notifyHeaders }),
  };
}

type Workers = {
  readonly recovery: Recovery;
  readonly taking: CallTaking;
  readonly commands: Commands;
  readonly relay: OutboxParts['relay'];
};

type Work = {
  readonly start: () => Promise<void>;
  /** Wakes the sweep for queued calls. Call it whenever a queued call may have been stored. */
  readonly wake: () => void;
  readonly stop: () => Promise<void>;
};

/**
 * Creates the parts that start last: the sweeps, the takers of queued calls, and the commands from
 * NATS.
 */
function createWork(
  environment: Environment,
  parts: Parts,
  { recovery, taking, commands, relay }: Workers,
): Work {
  const { logger, closers } = environment;
  const { storage, node, notifier, events } = parts;
  const { connection } = events;
  let waitingCalls: Sweeps['waitingCalls'] | undefined;
  const start = async (): Promise<void> => {
    const lateNodes = openLateNodes(environment, node, connection);
    const sweeps = await startSweeps(environment, {
      ...{ storage, lateNodes, notifier, recovery, taking },
      nodes: node.store,
    });
    waitingCalls = sweeps.waitingCalls;
    closers.add('sweeps', () => {
      // Stop the recovery first, because it may be waiting for an unreachable engine while a sweep
      // is waiting for the recovery.
      recovery.stop();
      return sweeps.stop();
    });
    const hints = serveDialHints(connection, (source) => taking.wake(source), logger);
    closers.add('hints', () => hints.stop());
    commands.serve();
    openEventRepair(environment, { ...parts, relay });
  };
  return { start, wake: () => waitingCalls?.wake(), stop: () => taking.stop() };
}
