// Size of the control frame that a request becomes.

import type { RequestOptions } from './srf-types.ts';

/**
 * Allowance for the frame around the message: length, message id, transaction id, dialog id and
 * separators.
 */
const frameOverheadBytes = 120;

/**
 * Returns an upper bound for the size of the control frame. Srf itself doesn't check the size, and
 * an oversized frame would stall the connection.
 */
export function requestFrameBytes(options: RequestOptions): number {
  const headers = Object.entries(options.headers ?? {}).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  const text = [options.method, options.uri, options.proxy, ...headers, options.body].join('');
  return (
    Buffer.byteLength(text) + Buffer.byteLength(options.stackDialogId ?? '') + frameOverheadBytes
  );
}
