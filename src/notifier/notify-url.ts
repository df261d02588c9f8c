// Checks notification URLs for the API and `offhook doctor`, without using the network.

import { hostMissing, namesHost } from '../lib/url-text.ts';

/** Longer URLs break some web servers and proxies. */
export const maxNotifyUrlLength = 2_048;

/** @returns undefined if the URL is valid */
export function notifyUrlProblem(text: string): string | undefined {
  if (text.length > maxNotifyUrlLength) {
    return `must have at most ${maxNotifyUrlLength} characters`;
  }
  if (!URL.canParse(text)) return 'must be an absolute URL';
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'must be an http or https URL';
  if (!namesHost(text)) return hostMissing;
  if (url.username !== '' || url.password !== '') {
    return 'must not hold a user or password; use notifyHeaders';
  }
  return undefined;
}
