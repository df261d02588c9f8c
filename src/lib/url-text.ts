// Checks the text of a URL for mistakes that `new URL` hides.

/**
 * Whether a host follows the scheme. `new URL` hides a missing host for http, https, ws and wss: it
 * skips extra slashes and adds missing ones. It reads both `http:///x` and `http:x` as the host
 * `x`.
 */
export function namesHost(text: string): boolean {
  // Leading spaces are not part of a URL.
  return /^ *[a-z][a-z\d+.-]*:\/\/[^/\\?#]/i.test(text);
}

export const hostMissing = 'must name a host after `//`';
