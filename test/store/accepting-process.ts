// A process that accepts calls as fast as it can, and prints each call as soon as it counts as
// stored. The test kills the process.

import { silentLogger } from '../../src/lib/logger.ts';
import { openDatabase } from '../../src/store/database.ts';
import { acceptedCall } from '../support/call-records.ts';
import { openLedger } from '../support/ledger.ts';

const [dataDir = '', databaseUrl] = process.argv.slice(2);
const database = await openDatabase({
  dataDir,
  logger: silentLogger,
  ...(databaseUrl === undefined ? {} : { databaseUrl }),
});
const ledger = openLedger(database);

async function acceptForEver(): Promise<never> {
  for (;;) {
    const call = acceptedCall();
    await ledger.accept(call, {});
    process.stdout.write(`${call.callId}\n`);
  }
}

await Promise.all(Array.from({ length: 10 }, acceptForEver));
