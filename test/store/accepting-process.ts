// A process that accepts calls as fast as it can and says each once it is promised to be durable; the test kills it.

import { silentLogger } from '../../src/lib/logger.ts';
import { createCallLedger } from '../../src/store/calls/call-ledger.ts';
import { openDatabase } from '../../src/store/database.ts';
import { createSecretBox } from '../../src/store/secrets.ts';
import { acceptedCall } from '../support/call-records.ts';

const [dataDir = '', databaseUrl] = process.argv.slice(2);
const database = await openDatabase({
  dataDir,
  logger: silentLogger,
  ...(databaseUrl === undefined ? {} : { databaseUrl }),
});
const ledger = createCallLedger({
  database,
  secrets: createSecretBox(Buffer.alloc(32, 7)),
  logger: silentLogger,
  clock: { now: () => new Date() },
});

async function acceptForEver(): Promise<never> {
  for (;;) {
    const call = acceptedCall();
    await ledger.accept(call, {});
    process.stdout.write(`${call.callId}\n`);
  }
}

await Promise.all(Array.from({ length: 10 }, acceptForEver));
