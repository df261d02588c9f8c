// Process of its own: makes an empty embedded database in the folder that it is given, and ends.

import { setFlagsFromString } from 'node:v8';
import { PGlite } from '@electric-sql/pglite';
import { startParameters } from './pglite-parameters.ts';

// Ctrl-C reaches the whole process group; the gateway decides what is to end.
process.on('SIGINT', () => undefined);

// It ends before code that the optimizing compiler made would be worth its time: half of the whole (5.4 s of a core to 3.3).
setFlagsFromString('--liftoff-only');

const database = await PGlite.create({
  dataDir: process.argv[2] ?? '',
  startParams: startParameters,
});
await database.close();
process.exit(0);
