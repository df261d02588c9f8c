// What PGlite's PostgreSQL is started with.

import { PGlite } from '@electric-sql/pglite';

/**
 * WebAssembly has no memory that is only promised: all of it is written to at the start, and so resident. PostgreSQL's own
 * 128 MB would be the largest part of an idle gateway. What does not fit is in the cache of the system, a read away.
 */
const sharedBuffers = '16MB';

export const startParameters: string[] = [
  ...PGlite.defaultStartParams,
  '-c',
  `shared_buffers=${sharedBuffers}`,
];
