// The services of calls as the gateway has them, short of SIP: requests are stored, and no process takes them.

import { CallRegistry } from '../../src/calls/life/call-registry.ts';
import { defaultCallLimits } from '../../src/calls/life/call-setup.ts';
import type { MediaPort } from '../../src/calls/media.ts';
import type { SipPort } from '../../src/calls/ports.ts';
import type { CompanionDependencies } from '../../src/companion/dependencies.ts';
import { createCallControl } from '../../src/dialout/call-control.ts';
import { createEndRecorder } from '../../src/dialout/end-recorder.ts';
import { createIntake } from '../../src/dialout/intake.ts';
import { openContextStore } from '../../src/interactions/context-store.ts';
import { createCallQueries } from '../../src/interactions/stored-calls.ts';
import type { Closers } from '../../src/lib/closers.ts';
import { createDeadLetters } from '../../src/notifier/dead-letters.ts';
import { createRouter } from '../../src/sip/trunks/routing.ts';
import { builtInTrunk, loadTrunks } from '../../src/sip/trunks/trunks.ts';
import { createConverter } from '../../src/sounds/converter.ts';
import { createSoundLibrary, createSoundStore } from '../../src/sounds/sound-store.ts';
import { createCallLedger } from '../../src/store/calls/call-ledger.ts';
import { appendSteps } from '../../src/store/outbox/call-appends.ts';
import { Outbox } from '../../src/store/outbox/outbox.ts';

const ownerId = 'contract';
/** More than any run of these tests places: the queue never drains. */
const maxQueued = 1_000_000;

export async function callServices(dependencies: CompanionDependencies, closers: Closers) {
  const { database, events, clock, logger } = dependencies;
  const ledger = createCallLedger(dependencies);
  const appending = {
    ...{ pool: database.pool, ownerId, now: () => clock.now(), leaseUntil: (now: Date) => now },
    // No receiver is notified here.
    ...{ owedFor: () => undefined, publishedThrough: () => undefined, passRefusedAfterMs: 0 },
  };
  const outbox = new Outbox({
    append: (steps) => appendSteps(appending, steps),
    onStored: () => undefined,
    logger,
  });
  closers.add('outbox', () => outbox.stop(3_000));
  const registry = new CallRegistry(
    { outbox, clock, logger, sip: unused as SipPort, media: unused as MediaPort },
    { limits: defaultCallLimits, maxConcurrent: 0 },
  );
  const converter = createConverter();
  closers.add('converter', () => converter.close());
  const ends = createEndRecorder(outbox);
  const gateway = { host: '127.0.0.1', port: 5060, transport: 'udp' } as const;
  return {
    intake: createIntake(
      {
        ...{ ledger, clock, logger, onStored: () => undefined },
        taking: { accepted: () => undefined, waiting: () => new Map() },
        limitsOf: () => undefined,
        queuedNotification: () => undefined,
        isStopping: () => false,
      },
      { maxQueued, queueTimeoutMs: 300_000 },
    ),
    control: createCallControl({
      ...{ ledger, registry, ends, clock, ownerId },
      askOwner: async () => false,
    }),
    // There is no call here that could be told to do something.
    commands: { run: async () => ({ ok: true, state: 'answered' }) as const },
    calls: createCallQueries(database, await openContextStore(events)),
    routes: createRouter({
      trunks: loadTrunks({ secrets: () => ({}), builtIn: [builtInTrunk('carrier', gateway)] }),
      allowedNetworks: ['127.0.0.0/8'],
    }),
    sounds: createSoundLibrary(createSoundStore({ database, clock }), converter),
    speechToTextProviders: undefined,
    maxCallDurationMs: 7_200_000,
    deadLetters: createDeadLetters(database, clock, () => undefined),
    isNotifiable: () => true,
    isSoundReachable: () => true,
    streams: {
      isReachable: () => true,
      seal: (_botId: string, url: string) => ({ url }),
      callOf: async () => undefined,
    },
  };
}

const unused: unknown = new Proxy(
  {},
  {
    get: (_target, name) => {
      throw new Error(`nothing is dialled here (${String(name)})`);
    },
  },
);
