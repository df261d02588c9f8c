// The gateway's call services without SIP: requests are stored, and no process takes the calls.

import type { ApiServices } from '../../src/api/services.ts';
import type { CompanionDependencies } from '../../src/companion/dependencies.ts';
import { createCommandRouting } from '../../src/dialout/command-routing.ts';
import { createEndRecorder } from '../../src/dialout/end-recorder.ts';
import { createIntake } from '../../src/dialout/intake.ts';
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
import type { TestRecordings } from '../support/recordings.ts';
import { ruleServices } from './rules.ts';

const ownerId = 'contract';
/** More calls than any run of these tests makes, because the queue never drains. */
const maxQueued = 1_000_000;

export async function callServices(
  dependencies: CompanionDependencies,
  closers: Closers,
  recordings: TestRecordings,
): Promise<Partial<ApiServices>> {
  const { database, clock, logger } = dependencies;
  const ledger = createCallLedger(dependencies);
  const appending = {
    ...{ pool: database.pool, ownerId, now: () => clock.now(), leaseUntil: (now: Date) => now },
    // These tests notify no receiver.
    ...{ owedFor: () => undefined, publishedThrough: () => undefined, passRefusedAfterMs: 0 },
  };
  const outbox = new Outbox({
    append: (steps) => appendSteps(appending, steps),
    onStored: () => undefined,
    logger,
  });
  closers.add('outbox', () => outbox.stop(3_000));
  const converter = createConverter();
  closers.add('converter', () => converter.close());
  const ends = createEndRecorder(outbox);
  const gateway = { host: '127.0.0.1', port: 5060, transport: 'udp' } as const;
  const routing = createCommandRouting({
    ...{ ledger, ends, clock, ownerId, commands: { run: () => undefined } },
    askOwner: async () => undefined,
  });
  return {
    ...ruleServices(dependencies, ownerId),
    intake: createIntake(
      {
        ...{ ledger, clock, logger, onStored: () => undefined },
        taking: {
          accepted: () => undefined,
          takeAlong: () => undefined,
          waiting: () => new Map(),
        },
        limitsOf: () => undefined,
        queuedNotification: () => undefined,
        isStopping: () => false,
      },
      { maxQueued, queueTimeoutMs: 300_000 },
    ),
    commands: {
      // `DELETE` gives its hang-up no id. No call here can run another command.
      run: async (callId, command) =>
        command.id === undefined
          ? await routing.run(callId, command)
          : { ok: true, state: 'answered' },
    },
    calls: createCallQueries(database),
    recordings: recordings.servicesOf(database),
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
    keyProblem: async () => undefined,
    streams: {
      isReachable: () => true,
      seal: (_botId: string, url: string) => ({ url }),
      callOf: async () => undefined,
    },
  };
}
