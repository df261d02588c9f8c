// The calls: what ends those of an earlier process, what takes new ones from the queue, and what ends them here.

import type { Metrics } from './api/metrics.ts';
import type { Environment } from './app.ts';
import type { Events } from './app-events.ts';
import type { FactConsumers } from './app-facts.ts';
import type { Node } from './app-nodes.ts';
import type { Storage } from './app-storage.ts';
import { CallRegistry } from './calls/call-registry.ts';
import { defaultCallLimits } from './calls/call-setup.ts';
import type { CallId } from './calls/call-types.ts';
import type { CallControl, Intake, TrunkLimits } from './calls/dialout-ports.ts';
import type { MediaPort, SipPort } from './calls/ports.ts';
import { createCallControl, type NodeCallControl } from './dialout/call-control.ts';
import { Dialer } from './dialout/dialer.ts';
import { createEndRecorder } from './dialout/end-recorder.ts';
import { guardSip } from './dialout/guarded-sip.ts';
import { createIntake } from './dialout/intake.ts';
import {
  endLostCalls,
  type RecoveryPorts,
  recoverCalls,
  republishEnds,
} from './dialout/recovery.ts';
import { TrunkPacers } from './dialout/trunk-pacers.ts';
import { factsOfCall } from './events/call-stream.ts';
import { sendCommand, serveCommands } from './events/commands.ts';
import { consumeDialout, publishDialout } from './events/dialout-queue.ts';
import { type Repetition, repeat } from './lib/repeat.ts';

export type Calls = {
  readonly registry: CallRegistry;
  readonly intake: Intake;
  readonly control: CallControl;
  /**
   * Ends what an earlier process left, then dials what is queued. Last of all: a process that cannot start must not ring
   * people first.
   */
  startTaking(): Promise<void>;
  drain(drainMs: number, force: AbortSignal): Promise<void>;
};

type Parts = {
  readonly storage: Storage;
  readonly node: Node;
  readonly facts: FactConsumers;
  readonly events: Events;
  readonly sip: SipPort;
  readonly limitsOf: (trunk: string) => TrunkLimits | undefined;
  readonly media: MediaPort;
  readonly metrics: Metrics;
};

/** Requests that wait to be dialled: a minute of what one node can dial. */
const maxQueued = 10_000;
/** Calls being claimed at once; the claims share statements. */
const claimsInFlight = 64;
/** Also how long room that another node made on a trunk may go unnoticed. */
const sweepEveryMs = 1_000;
const republishEveryMs = 30_000;
/** The start does not wait longer for NATS to take what is owed; the rounds go on with it. */
const startRepublishTimeoutMs = 5_000;
const lostCallsEveryMs = 60_000;
/** A lost node is noticed within this part of its lease. */
const watchesInLease = 8;
const roundsBetweenLooks = 10;
const purgeEveryMs = 3_600_000;
/** A node that lost its lease hangs up what others may not know of, then ends. */
const abandonTimeoutMs = 3_000;
/** After the drain: hanging up, `amd_stopped`, and the end in SQL take well under this. */
const endAllTimeoutMs = 5_000;

export function openCalls(environment: Environment, parts: Parts): Calls {
  const { config, logger, clock, closers } = environment;
  const { storage, events, metrics } = parts;
  const { ledger } = storage;
  const { connection, publisher } = events;
  const { lease } = parts.node;
  const sip = guardSip(parts.sip, {
    mayPlace: () => lease.isHeld,
    onPlaced: (callId) => pacers.onPlaced(callId),
    onReleased: (callId) => pacers.onReleased(callId),
    clock,
  });
  const registry = new CallRegistry(
    { ledger, publisher, clock, logger, sip, media: parts.media },
    {
      limits: { ...defaultCallLimits, maxDurationMs: config.calls.maxDurationMs },
      maxConcurrent: config.calls.maxConcurrent,
      onEnded: (callId, outcome) => {
        pacers.onEnded(callId);
        if (outcome !== undefined) metrics.callEnded(outcome);
      },
    },
  );
  const pacers: TrunkPacers = new TrunkPacers({
    queue: storage.trunkQueue,
    limitsOf: parts.limitsOf,
    room: () => registry.freePlaces,
    // Whoever accepted it may have died before it published that.
    start: (call) => registry.start(call, { restatesQueued: true }),
    logger,
  });
  const ends = createEndRecorder({ ledger, publisher, logger });
  const control = createCallControl({
    ledger,
    registry,
    ends,
    clock,
    ownerId: config.ownerId,
    askOwner: async (callId) =>
      (await sendCommand(connection, callId, { command: 'hangup' }))?.ok === true,
  });
  const dialer = new Dialer(
    { ledger, registry, pacers, ends, clock, logger },
    { ownerId: config.ownerId },
  );
  const queue = {
    publish: (callId: CallId, trunk: string | undefined) =>
      publishDialout(connection, callId, { acceptedBy: config.ownerId, trunk }),
    connected: () => connection.connected(),
  };
  const intake = createIntake(
    {
      ledger,
      trunks: storage.trunkQueue,
      limitsOf: parts.limitsOf,
      publisher,
      queue,
      clock,
      logger,
    },
    { maxQueued, queueTimeoutMs: config.calls.queueTimeoutMs },
  );

  const recovery: RecoveryPorts = {
    ledger,
    factsOfCall: (call) => factsOfCall(connection, call),
    sip: parts.sip,
    ends,
    publisher,
    clock,
    logger,
  };
  const running: (() => unknown)[] = [];
  const startTaking = async (): Promise<void> => {
    const rounds = await startRounds(environment, parts, { recovery, dialer, registry });
    closers.add('rounds', () => Promise.all(rounds.map((round) => round.stop())));
    const consumer = await consumeDialout(connection, {
      maxInFlight: claimsInFlight,
      handle: (callId, { acceptedBy, trunk }) =>
        dialer.dial(callId as CallId, { trunk, restatesQueued: acceptedBy !== config.ownerId }),
      logger,
    });
    const commands = serveCommands(connection, (callId) => hangUp(control, callId), logger);
    running.push(
      () => commands.stop(),
      () => consumer.stop(),
    );
  };
  const stopTaking = async (): Promise<void> => {
    dialer.stop();
    await pacers.stop();
    for (const stop of running.splice(0)) await stop();
  };
  const { drain, isDraining } = createDrain(registry, stopTaking);
  parts.node.onLost(() => {
    logger.fatal('another node took this one for dead and ended its calls');
    registry.abandonAll();
    const error = new Error('the lease of this node is lost');
    void sip.idle(abandonTimeoutMs).then(() => environment.onFatal(error));
  });
  // Nobody has drained them where a later part did not start.
  closers.add('calls', () => drain(0, AbortSignal.abort()));
  return {
    registry,
    startTaking,
    // What is accepted while the last calls finish would wait for the next process.
    intake: {
      submit: async (submission) => (isDraining() ? shuttingDown : await intake.submit(submission)),
    },
    control,
    drain,
  };
}

const shuttingDown = {
  kind: 'unavailable',
  what: 'this gateway, which is shutting down,',
  retryAfterS: 5,
} as const;

function createDrain(registry: CallRegistry, stopTaking: () => Promise<void>) {
  let drained: Promise<void> | undefined;
  const drainNow: Calls['drain'] = async (drainMs, force) => {
    await stopTaking();
    const patience = AbortSignal.any([AbortSignal.timeout(drainMs), force]);
    await registry.empty(patience).catch(() => undefined);
    registry.endAll({ by: 'gateway', reason: 'Gateway shut down' });
    await registry.empty(AbortSignal.timeout(endAllTimeoutMs)).catch(() => undefined);
  };
  const drain: Calls['drain'] = (drainMs, force) => {
    drained ??= drainNow(drainMs, force);
    return drained;
  };
  return { drain, isDraining: () => drained !== undefined };
}

type Workers = {
  readonly recovery: RecoveryPorts;
  readonly dialer: Dialer;
  readonly registry: CallRegistry;
};

/** Ends what an earlier process left, before new calls are taken; then everything that is looked after again and again. */
async function startRounds(
  environment: Environment,
  parts: Parts,
  { recovery, dialer, registry }: Workers,
): Promise<readonly Repetition[]> {
  const { config, logger } = environment;
  const { node, facts, publisher } = { ...parts, publisher: parts.events.publisher };
  let rounds = 0;
  let left = await endLostNodes(environment, recovery);
  await republishEnds(recovery, AbortSignal.timeout(startRepublishTimeoutMs));
  return [
    repeat({ name: 'sweep', everyMs: sweepEveryMs, logger }, () => dialer.sweep()),
    repeat({ name: 'republish', everyMs: republishEveryMs, logger }, (stopped) =>
      republishEnds(recovery, stopped),
    ),
    repeat({ name: 'lost calls', everyMs: lostCallsEveryMs, logger }, async () => {
      // What a machine stated last is on its way to the stream: its sequences go on from there.
      const isHere = (callId: CallId) => registry.has(callId) || publisher.holds(callId);
      await endLostCalls(recovery, config.ownerId, isHere);
    }),
    repeat({ name: 'nodes', everyMs: config.leaseMs / watchesInLease, logger }, async () => {
      const lost = await node.store.expireOthers();
      if (lost.length > 0) logger.warn({ nodes: lost }, 'nodes lost their lease; taking over');
      // Once in a while all the same: a process that was lost may have taken a call in its last moment.
      const isDue = (rounds += 1) % roundsBetweenLooks === 0;
      if (lost.length === 0 && left === 0 && !isDue) return;
      left = await endLostNodes(environment, recovery);
      await facts.takeOver();
    }),
    repeat({ name: 'purge', everyMs: purgeEveryMs, logger }, () => purge(environment, parts)),
  ];
}

/** SQL must say of every such call how it ended. The far ends are hung up beside it. How many could not be ended. */
async function endLostNodes(
  { config, logger }: Environment,
  recovery: RecoveryPorts,
): Promise<number> {
  const { ended, failed, farEnds } = await recoverCalls(recovery, { except: config.ownerId });
  void farEnds;
  if (ended > 0) logger.warn({ calls: ended }, 'ended the calls of a lost process');
  return failed;
}

async function purge(
  { config, clock }: Environment,
  { storage: { ledger }, node }: Parts,
): Promise<void> {
  const dayMs = 86_400_000;
  await node.store.forgetLost();
  await ledger.purge(new Date(clock.now().getTime() - config.retention.eventDays * dayMs));
}

async function hangUp(control: NodeCallControl, callId: string) {
  const state = await control.endHere(callId as CallId);
  return state === undefined ? undefined : ({ ok: true, state } as const);
}
