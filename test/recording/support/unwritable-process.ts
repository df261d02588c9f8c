// A process that can't write a byte to any file, as on a full disk. It begins a recording in the
// folder that it's given. Prints the code of the error.

import { SpoolWriter } from '../../../src/recording/thread/spool-writer.ts';

const [folder = ''] = process.argv.slice(2);
try {
  new SpoolWriter(
    folder,
    {
      ...{ callId: 'call-1', accountId: 'a', botId: 'b', ownerId: 'node-1/x' },
      ...{ startedAt: 0, from: 'answer', version: 1, fill: 'silence' },
    },
    undefined,
  ).close();
} catch (error) {
  process.stdout.write((error as NodeJS.ErrnoException).code ?? 'no code');
}
