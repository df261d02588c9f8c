// The start parameters of PGlite's PostgreSQL.

import { PGlite } from '@electric-sql/pglite';

/**
 * WebAssembly cannot reserve memory without using it: PGlite writes to the whole of it at the
 * start, so it is resident. PostgreSQL's default of 128 MB would be the largest part of an idle
 * gateway. Pages that do not fit are in the system's cache, one read away.
 */
const sharedBuffers = '16MB';

export const startParameters: string[] = [
  ...PGlite.defaultStartParams,
  '-c',
  `shared_buffers=${sharedBuffers}`,
];
