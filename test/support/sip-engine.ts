// Starts a SIP engine on its own ports.

import {
  type SipEngine,
  type SipEngineAddresses,
  type SipEngineOptions,
  startSipEngine,
  type TlsTable,
} from '../../src/embedded/drachtio/engine.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { startDrachtioServer } from './drachtio-server.ts';
import { patientClock } from './patient-clock.ts';

/** The path of a drachtio-server. Undefined if the tests run on the embedded engine. */
export const drachtioBinary = process.env['TEST_DRACHTIO'] || undefined;

/**
 * Time within which an engine with short timers gives up a silent far end. A drachtio-server takes
 * 32 s (64 * T1, RFC 3261, section 17.1.1.2).
 */
export const silenceWithinMs = drachtioBinary === undefined ? undefined : 40_000;

/** What the embedded engine and a drachtio-server have in common. */
export type TestEngine = SipEngineAddresses & {
  close(): Promise<void>;
  /** The embedded engine only. */
  useTls?(table: TlsTable): void;
};

const defaultSecret = 'cymru';

/**
 * Starts the embedded engine, or a real drachtio-server if TEST_DRACHTIO names its program. That
 * has fixed timers and its own log, so it ignores `timers`, `clock` and `logger`. A test that must
 * not wait for real timers is `onlyEmbedded`. If `tls` names a trunk, it gets a TLS contact, which
 * verifies no certificate.
 */
export async function startEngine(options: Partial<SipEngineOptions> = {}): Promise<TestEngine> {
  if (drachtioBinary === undefined) return await startEmbeddedEngine(options);
  const { secret = defaultSecret, sipPort, controlPort, tls = {} } = options;
  const hasTls = Object.keys(tls).length > 0;
  return await startDrachtioServer({
    binary: drachtioBinary,
    secret,
    sipPort,
    controlPort,
    hasTls,
  });
}

export function startEmbeddedEngine(options: Partial<SipEngineOptions> = {}): Promise<SipEngine> {
  return startSipEngine({
    ...{ sipHost: '127.0.0.1', sipPort: 0, controlHost: '127.0.0.1', controlPort: 0 },
    ...{ secret: defaultSecret, clock: patientClock(), logger: silentLogger },
    ...options,
  });
}
