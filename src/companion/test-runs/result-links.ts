// Signed links to result files. Anybody with a link can use it for a limited time. Because the
// links are signed, any node can check them and we don't have to store them.

import { timingSafeEqual } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { SecretBox } from '../../store/secrets.ts';
import type { RunKey } from './stored-test-runs.ts';

export const resultPath = '/api/public/test-results';
/**
 * Long enough for a person or a program to follow the link. After that, clients can request the
 * status again to get a new link.
 */
const lifetimeS = 15 * 60;

export type ResultLinks = {
  /** Creates a new link, which consists of a path and a query. */
  make(run: RunKey): string;
  check(run: RunKey, query: { expires: string; signature: string }): 'good' | 'expired' | 'changed';
};

export function createResultLinks(
  secrets: Pick<SecretBox, 'sign' | 'signatures'>,
  clock: { now(): Date },
): ResultLinks {
  const nowS = (): number => Math.floor(clock.now().getTime() / 1_000);
  // Ids can't contain slashes, so the text is unambiguous.
  const textOf = ({ accountId, botId, runId }: RunKey, expires: string): string =>
    `${accountId}/${botId}/${runId}/${expires}`;
  return {
    make(run) {
      const expires = String(nowS() + lifetimeS);
      const signature = secrets.sign('result-link', textOf(run, expires)).toString('hex');
      const path = [resultPath, run.accountId, run.botId, run.runId].join('/');
      return `${path}?expires=${expires}&signature=${signature}`;
    },
    check(run, { expires, signature }) {
      // Compare the text, because hex decoding would silently stop at the first invalid character.
      const given = Buffer.from(signature);
      const isOurs = secrets.signatures('result-link', textOf(run, expires)).some((signed) => {
        const expected = Buffer.from(signed.toString('hex'));
        return given.length === expected.length && timingSafeEqual(given, expected);
      });
      if (!isOurs) return 'changed';
      return nowS() > Number(expires) ? 'expired' : 'good';
    },
  };
}

const loopback = /^(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?$/i;

/**
 * Returns the base for links, which is PUBLIC_URL or the address on which the request arrived. A
 * client can put anything into the `Host` header and our links are signed, so we only use the
 * header if it names the client's own machine.
 */
export function linkBase(request: FastifyRequest, publicUrl: string | undefined): string {
  if (publicUrl !== undefined) return publicUrl.replace(/\/+$/, '');
  const { host = '' } = request.raw.headers;
  if (loopback.test(host)) return `http://${host}`;
  const { localAddress = '127.0.0.1', localPort } = request.socket;
  const address = localAddress.replace(/^::ffff:/, '');
  return `http://${address.includes(':') ? `[${address}]` : address}:${localPort ?? 80}`;
}
