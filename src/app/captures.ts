// What is kept of calls beside their events.

import { writeCaptures } from '../capture/capture-store.ts';
import { Captures } from '../capture/captures.ts';
import { sipCallIdOf } from '../sip/engine/sip-tap.ts';
import type { Environment } from './environment.ts';
import type { Storage } from './storage.ts';

export function openCaptures(
  { logger, closers }: Environment,
  { database }: Pick<Storage, 'database'>,
): Captures {
  const captures = new Captures({
    write: (stored) => writeCaptures(database.pool, stored),
    sipCallIdOf,
    logger,
  });
  closers.add('captures', () => captures.flush());
  return captures;
}
