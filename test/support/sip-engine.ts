// Starts the embedded SIP engine on its own ports.

import {
  type SipEngine,
  type SipEngineOptions,
  startSipEngine,
} from '../../src/embedded/drachtio/engine.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { patientClock } from './patient-clock.ts';

export function startEngine(options: Partial<SipEngineOptions> = {}): Promise<SipEngine> {
  return startSipEngine({
    ...{ sipHost: '127.0.0.1', sipPort: 0, controlHost: '127.0.0.1', controlPort: 0 },
    ...{ secret: 'cymru', clock: patientClock(), logger: silentLogger },
    ...options,
  });
}
