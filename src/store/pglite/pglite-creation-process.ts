// Entry file of the separate process that creates an empty embedded database and exits. The first
// argument is the database's folder.

import { setFlagsFromString } from 'node:v8';
import { PGlite } from '@electric-sql/pglite';
import { startParameters } from './pglite-parameters.ts';

// Ctrl-C reaches the whole process group. The gateway decides which processes end.
process.on('SIGINT', () => undefined);

// This process is too short for the optimizing compiler to pay off. Creation takes 3.3 s of CPU
// without it, and 5.4 s with it.
setFlagsFromString('--liftoff-only');

const database = await PGlite.create({
  dataDir: process.argv[2] ?? '',
  startParams: startParameters,
});
await database.close();
process.exit(0);
