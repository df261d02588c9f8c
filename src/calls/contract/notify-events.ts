// The `notifyEvents` field of a dial-out request. It selects further events for which to send
// notifications with status `Event`. Events that have a status of their own don't need to be
// selected.

import { type CallEventType, callEventTypes } from './call-event.ts';

/**
 * Types whose notifications have their own status. If we let a request select them, the receiver
 * would get each of them twice.
 */
export const typesWithStatus = ['answered', 'amd', 'completed', 'failed'] as const;
export type TypeWithStatus = (typeof typesWithStatus)[number];

export type SelectedEventType = Exclude<CallEventType, TypeWithStatus>;

export const selectedEventTypes = callEventTypes.filter(
  (type): type is SelectedEventType => !typesWithStatus.some((known) => known === type),
);

/**
 * Selectors for types with a common prefix, such as `stream-*`. There's no `dtmf-*`, because it
 * wouldn't match `dtmf` itself.
 */
const families = [...new Set(selectedEventTypes.map((type) => `${type.split('-', 1)[0]}-`))]
  .filter((prefix) => selectedEventTypes.filter((type) => type.startsWith(prefix)).length > 1)
  .map((prefix) => `${prefix}*`);

/**
 * The names that a request may use. Naming a type that has its own status is allowed, but has no
 * effect.
 */
export const eventSelectors: readonly string[] = [...callEventTypes, ...families, '*'];

/** Returns each type once, in the order of `callEventTypes`. */
export function typesSelectedBy(selectors: readonly string[]): readonly SelectedEventType[] {
  return selectedEventTypes.filter((type) =>
    selectors.some((selector) =>
      selector.endsWith('*') ? type.startsWith(selector.slice(0, -1)) : selector === type,
    ),
  );
}
