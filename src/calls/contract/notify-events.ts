// The events that `notifyEvents` of a dial-out request selects. They are notified with status
// `Event`, in addition to the events that have a status of their own.

import { type CallEventType, callEventTypes } from './call-event.ts';

/** These events have notifications with a status of their own, so they are not sent twice. */
export const typesWithStatus = ['answered', 'amd', 'completed', 'failed'] as const;
export type TypeWithStatus = (typeof typesWithStatus)[number];

export type SelectedEventType = Exclude<CallEventType, TypeWithStatus>;

export const selectedEventTypes = callEventTypes.filter(
  (type): type is SelectedEventType => !typesWithStatus.some((known) => known === type),
);

/**
 * A prefix that several types share, such as `stream-*`. `dtmf-*` is not a family, because it would
 * leave out `dtmf` itself.
 */
const families = [...new Set(selectedEventTypes.map((type) => `${type.split('-', 1)[0]}-`))]
  .filter((prefix) => selectedEventTypes.filter((type) => type.startsWith(prefix)).length > 1)
  .map((prefix) => `${prefix}*`);

/**
 * The names that a request may use. A type with a status of its own may be named, but has no
 * effect.
 */
export const eventSelectors: readonly string[] = [...callEventTypes, ...families, '*'];

/** @returns each type once, in the order of `callEventTypes`, whatever the order of the names */
export function typesSelectedBy(selectors: readonly string[]): readonly SelectedEventType[] {
  return selectedEventTypes.filter((type) =>
    selectors.some((selector) =>
      selector.endsWith('*') ? type.startsWith(selector.slice(0, -1)) : selector === type,
    ),
  );
}
