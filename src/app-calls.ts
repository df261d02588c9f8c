// The calls: what ends those of an earlier process, what takes new ones from the queue, and what ends them here.

import type { Metrics } from './api/metrics.ts';
import type { Environment } from './app.ts';
import type { Events } from './app-events.ts';
import type { FactConsumers } from './app-facts.ts';
import type { Node } from './app-nodes.ts';
import { startRounds } from './app-rounds.ts';
import type { Storage } from './app-storage.ts';
import { CallRegistry } from './calls/call-registry.ts';
import { defaultCallLimits } from './calls/call-setup.ts';
import type { CallId } from './calls/contract/identity.ts';
import type { CallControl, Intake, TrunkLimits } from './calls/dialout-ports.ts';
import type { MediaPort, SipPort } from './calls/ports.ts';
import { createCallControl, type NodeCallControl } from './dialout/call-control.ts';
import { Dialer } from './dialout/dialer.ts';
import { createEndRecorder, type EndRecorder } from './dialout/end-recorder.ts';
import { guardSip } from './dialout/guarded-sip.ts';
import { createIntake } from './dialout/intake.ts';
import { Recovery } from './dialout/recovery.ts';
import { TrunkPacers } from './dialout/trunk-pacers.ts';
import { factsOfCall } from './events/call-stream.ts';
import { sendCommand, serveCommands } from './events/commands.ts';
import { consumeDialout, publishDialout } from './events/dialout-queue.ts';
import { deadline } from './lib/deadline.ts';

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
    turnOf: (callId) => pacers.turnOf(callId),
    onPlaced: (callId) => pacers.onPlaced(callId),
    onReleased: (callId) => pacers.onReleased(callId),
    clock,
  });
  const registry = new CallRegistry(
    {
      ...{ ledger, publisher, clock, logger, sip, media: parts.media },
      untilReleased: (callId) => sip.untilReleased(callId),
    },
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
    // What is taken without the lease would fail. The sweep wakes the pacers when it is held again.
    room: () => (lease.isHeld ? registry.freePlaces : 0),
    // Whoever accepted it may have died before it published that.
    start: (call) => registry.start(call, { restatesQueued: true }),
    endIfExpired: (call) => dialer.endIfExpired(call),
    logger,
  });
  const ends = createEndRecorder({ ledger, publisher, logger });
  const control = openControl(environment, parts, registry, ends);
  const dialer: Dialer = new Dialer(
    { ledger, registry, pacers, ends, clock, logger, mayPlace: () => lease.isHeld },
    { ownerId: config.ownerId },
  );
  const intake = openIntake(environment, parts);
  const recovery = new Recovery(
    {
      ...{ ledger, sip, ends, publisher, clock, logger },
      factsOfCall: (call) => factsOfCall(connection, call),
      onTheWire: () => sip.onTheWire(),
    },
    config.ownerId,
  );
  closers.add('recovery', () => recovery.stop());
  const taking = createTaking(environment, parts, { recovery, dialer, pacers, registry, control });
  const { drain, isDraining } = createDrain(registry, taking.stop);
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
    startTaking: taking.start,
    // What is accepted while the last calls finish would wait for the next process.
    intake: {
      submit: async (submission) => (isDraining() ? shuttingDown : await intake.submit(submission)),
    },
    control,
    drain,
  };
}

function openControl(
  { config, clock }: Environment,
  { storage: { ledger }, events: { connection } }: Parts,
  registry: CallRegistry,
  ends: EndRecorder,
): NodeCallControl {
  return createCallControl({
    ...{ ledger, registry, ends, clock },
    ownerId: config.ownerId,
    askOwner: async (callId) =>
      (await sendCommand(connection, callId, { command: 'hangup' }))?.ok === true,
  });
}

function openIntake({ config, clock, logger }: Environment, parts: Parts): Intake {
  const { storage, events, limitsOf } = parts;
  const { ledger, trunkQueue: trunks } = storage;
  const { connection, publisher } = events;
  const queue = {
    publish: (callId: CallId, trunk: string | undefined) =>
      publishDialout(connection, callId, { acceptedBy: config.ownerId, trunk }),
    connected: () => connection.connected(),
  };
  return createIntake(
    { ledger, trunks, limitsOf, publisher, queue, clock, logger },
    { maxQueued, queueTimeoutMs: config.calls.queueTimeoutMs },
  );
}

type Workers = {
  readonly recovery: Recovery;
  readonly dialer: Dialer;
  readonly pacers: TrunkPacers;
  readonly registry: CallRegistry;
  readonly control: NodeCallControl;
};

/** Calls from the queue, and commands of bots. */
function createTaking(
  environment: Environment,
  parts: Parts,
  { recovery, dialer, pacers, registry, control }: Workers,
) {
  const { config, logger, closers } = environment;
  const { storage, node, facts, events } = parts;
  const { connection, publisher } = events;
  const running: (() => unknown)[] = [];
  const start = async (): Promise<void> => {
    const rounds = await startRounds(environment, {
      ...{ storage, node, facts, publisher, recovery, dialer, registry },
    });
    closers.add('rounds', () => {
      // A round may wait for what the recovery is at: an engine that is away, for example.
      recovery.stop();
      return Promise.all(rounds.map((round) => round.stop()));
    });
    const consumer = await consumeDialout(connection, {
      maxInFlight: claimsInFlight,
      room: (signal) => registry.room(signal),
      handle: (callId, { acceptedBy, trunk }) =>
        dialer.dial(callId as CallId, { trunk, restatesQueued: acceptedBy !== config.ownerId }),
      logger,
    });
    const commands = serveCommands(connection, (callId) => hangUp(control, callId), logger);
    // Calls that end by themselves during a drain can still be ended by command.
    closers.add('commands', () => commands.stop());
    running.push(() => consumer.stop());
  };
  const stop = async (): Promise<void> => {
    dialer.stop();
    // Side by side: what the consumer brings while a pacer waits for SQL would be refused, again and again.
    await Promise.all([pacers.stop(), ...running.splice(0).map((end) => end())]);
  };
  return { start, stop };
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
    using patience = deadline(drainMs, force);
    await registry.empty(patience.signal).catch(() => undefined);
    registry.endAll({ by: 'gateway', reason: 'Gateway shut down' });
    await registry.empty(AbortSignal.timeout(endAllTimeoutMs)).catch(() => undefined);
  };
  const drain: Calls['drain'] = (drainMs, force) => {
    drained ??= drainNow(drainMs, force);
    return drained;
  };
  return { drain, isDraining: () => drained !== undefined };
}

async function hangUp(control: NodeCallControl, callId: string) {
  const state = await control.endHere(callId as CallId);
  return state === undefined ? undefined : ({ ok: true, state } as const);
}
