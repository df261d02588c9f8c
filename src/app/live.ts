// Events as they are stored, for those who follow them over HTTP.

import { watchEvents } from '../events/event-hints.ts';
import { createEventLog } from '../live/event-log.ts';
import { LiveEvents } from '../live/live-events.ts';
import type { Environment } from './environment.ts';
import type { Events } from './events.ts';
import type { Storage } from './storage.ts';

const dayMs = 86_400_000;

export function openLive(
  { config, logger, clock, closers }: Environment,
  storage: Pick<Storage, 'database'>,
  events: Pick<Events, 'connection'>,
): LiveEvents {
  const live = new LiveEvents({
    log: createEventLog(storage.database),
    watch: (wake) => watchEvents(events.connection, wake),
    retentionMs: config.retention.eventDays * dayMs,
    now: () => clock.now(),
    logger,
  });
  closers.add('live events', () => live.stop());
  return live;
}
