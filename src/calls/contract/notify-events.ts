// Which events a dial-out request may have notified as they are (`notifyEvents`), beside those that have a status of their own.

import { type CallEventType, callEventTypes } from './call-event.ts';

/** Events that are notified in any case, with their own status and members: they are not sent twice. */
export const typesWithStatus = ['answered', 'amd', 'completed', 'failed'] as const;

export type SelectedEventType = Exclude<CallEventType, (typeof typesWithStatus)[number]>;

export const selectedEventTypes = callEventTypes.filter(
  (type): type is SelectedEventType => !typesWithStatus.some((known) => known === type),
);

/** `stream-*`, …: what several types begin with. Without `dtmf-*`, which would leave out `dtmf` itself. */
const families = [...new Set(selectedEventTypes.map((type) => `${type.split('-', 1)[0]}-`))]
  .filter((prefix) => selectedEventTypes.filter((type) => type.startsWith(prefix)).length > 1)
  .map((prefix) => `${prefix}*`);

/** What a request may name: each type, also those that are notified in any case, each family, and `*` for all. */
export const eventSelectors: readonly string[] = [...callEventTypes, ...families, '*'];

/** Each once, in the order of `callEventTypes`, however they were named. */
export function typesSelectedBy(selectors: readonly string[]): readonly SelectedEventType[] {
  return selectedEventTypes.filter((type) =>
    selectors.some((selector) =>
      selector.endsWith('*') ? type.startsWith(selector.slice(0, -1)) : selector === type,
    ),
  );
}
