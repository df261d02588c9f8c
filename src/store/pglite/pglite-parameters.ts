// The start parameters of PGlite's PostgreSQL.

import { PGlite } from '@electric-sql/pglite';

/**
 * WebAssembly can't reserve memory without using it, and PGlite writes to all of the buffers when
 * it starts, so the buffers are always resident. PostgreSQL's default of 128 MB would be most of an
 * idle gateway's memory. Pages that don't fit into the buffers can still be read quickly from the
 * operating system's cache.
 */
const sharedBuffers = '8MB';

export const startParameters: string[] = [
  ...PGlite.defaultStartParams,
  '-c',
  `shared_buffers=${sharedBuffers}`,
];
