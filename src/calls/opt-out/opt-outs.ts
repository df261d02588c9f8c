// How a person opts out: by a key of the phone, or by words that made the application send the
// command.

import type { CallId } from '../contract/identity.ts';
import { maxSuppressionSourceLength } from '../rules/suppression.ts';

export const optOutWays = ['key', 'command'] as const;
export type OptOutWay = (typeof optOutWays)[number];

/** Says in a suppression which call it came from. `key` is undefined for a command. */
export function sourceOf(callId: CallId, key?: string): string {
  const how = key === undefined ? 'command' : `key ${key}`;
  return `${how} of ${callId}`.slice(0, maxSuppressionSourceLength);
}
