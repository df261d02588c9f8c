// Opens a call ledger on a test database. All ledgers of the tests use the same key.

import { silentLogger } from '../../src/lib/logger.ts';
import {
  type CallLedger,
  type CallLedgerDependencies,
  createCallLedger,
} from '../../src/store/calls/call-ledger.ts';
import { createSecretBox } from '../../src/store/secrets.ts';

export function openLedger(
  database: CallLedgerDependencies['database'],
  now = () => new Date(),
): CallLedger {
  const secrets = createSecretBox(Buffer.alloc(32, 7));
  return createCallLedger({ database, secrets, logger: silentLogger, clock: { now } });
}
