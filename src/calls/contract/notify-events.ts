// The member `notifyEvents` of a dial-out request. It selects events to notify with status `Event`,
// in addition to the events that have their own status.

import { type CallEventType, callEventTypes } from './call-event.ts';

/** Types whose notifications have their own status. Selecting them would only send them twice. */
export const typesWithStatus = ['answered', 'amd', 'completed', 'failed'] as const;
export type TypeWithStatus = (typeof typesWithStatus)[number];

export type SelectedEventType = Exclude<CallEventType, TypeWithStatus>;

export const selectedEventTypes = callEventTypes.filter(
  (type): type is SelectedEventType => !typesWithStatus.some((known) => known === type),
);

/**
 * Selectors for types with a common prefix, such as `stream-*`. `dtmf-*` is excluded, because it
 * would not match `dtmf` itself.
 */
const families = [...new Set(selectedEventTypes.map((type) => `${type.split('-', 1)[0]}-`))]
  .filter((prefix) => selectedEventTypes.filter((type) => type.startsWith(prefix)).length > 1)
  .map((prefix) => `${prefix}*`);

/** The names that a request may use. Naming a type that has its own status has no effect. */
export const eventSelectors: readonly string[] = [...callEventTypes, ...families, '*'];

/** @returns each type once, in the order of `callEventTypes`, whatever the order of the names */
export function typesSelectedBy(selectors: readonly string[]): readonly SelectedEventType[] {
  return selectedEventTypes.filter((type) =>
    selectors.some((selector) =>
      selector.endsWith('*') ? type.startsWith(selector.slice(0, -1)) : selector === type,
    ),
  );
}
