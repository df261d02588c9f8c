// Entry file of the separate process that creates an embedded database with its tables, and exits.
// The first argument is the database's folder, the second one is the path of its socket, as
// `pg` expects it.

import { dirname } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import { Pool } from 'pg';
import { createLogger } from '../../lib/logger.ts';
import { makeDays } from '../days.ts';
import { ensureSchema, pgliteHome } from '../schema.ts';
import { startParameters } from './pglite-parameters.ts';

const [folder = '', socketPath = ''] = process.argv.slice(2);

// Ctrl-C reaches the whole process group. The gateway decides which processes end.
process.on('SIGINT', () => undefined);

// This process is too short for the optimizing compiler to pay off. Creation takes 3.3 s of CPU
// without it, and 5.4 s with it.
setFlagsFromString('--liftoff-only');

const database = await PGlite.create({ dataDir: folder, startParams: startParameters });
const server = new PGLiteSocketServer({ db: database, path: socketPath });
await server.start();
const pool = new Pool({
  host: dirname(socketPath),
  user: 'postgres',
  database: 'postgres',
  max: 1,
});
// Nobody reads this process's log. The gateway reads its error output if it fails.
const logger = createLogger({ level: 'silent', nodeId: '' });
await ensureSchema(pool, { logger, home: pgliteHome(folder) });
await makeDays(pool, logger, new Date());
await pool.end();
await server.stop();
await database.close();
process.exit(0);
