// The start parameters of PGlite's PostgreSQL.

import { PGlite } from '@electric-sql/pglite';

/**
 * WebAssembly can't reserve memory without using it. PGlite writes to all of the buffers when it
 * starts, so they are resident. PostgreSQL's default of 128 MB would be most of an idle gateway's
 * memory. Pages that don't fit are in the system's cache, one read away.
 */
const sharedBuffers = '16MB';

export const startParameters: string[] = [
  ...PGlite.defaultStartParams,
  '-c',
  `shared_buffers=${sharedBuffers}`,
];
