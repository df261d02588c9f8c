// What `new URL` hides about the text of a URL.

/**
 * Whether a host follows the scheme. `new URL` hides this for http, https, ws and wss: it skips
 * extra slashes and adds missing ones, so it reads both `http:///x` and `http:x` as the host `x`.
 */
export function namesHost(text: string): boolean {
  // Spaces in front are no part of a URL.
  return /^ *[a-z][a-z\d+.-]*:\/\/[^/\\?#]/i.test(text);
}

export const hostMissing = 'must name a host after `//`';
