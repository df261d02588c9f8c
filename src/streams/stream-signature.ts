// What the upgrade request is signed with: our own header, and the one that bots' libraries check already.

import { createHmac } from 'node:crypto';

export function signatureHeaders(
  url: string,
  secret: string,
  timestampS: number,
): Readonly<Record<string, string>> {
  const { pathname, search } = new URL(url);
  const own = createHmac('sha256', secret)
    .update(`${timestampS}.${pathname}${search}`)
    .digest('hex');
  return {
    'Gateway-Signature': `t=${timestampS},v1=${own}`,
    // Over the URL to the letter as it was configured: what a bot compares with is what its owner wrote.
    'X-Twilio-Signature': createHmac('sha1', secret).update(url).digest('base64'),
  };
}
