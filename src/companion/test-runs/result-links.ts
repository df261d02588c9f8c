// Links to result files: good for any holder, for a while. Nothing is stored of them; every node can check them.

import { timingSafeEqual } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { SecretBox } from '../../store/secrets.ts';
import type { RunKey } from './stored-test-runs.ts';

export const resultPath = '/api/public/test-results';
/** To click on it, or for a program to follow it: the status gives a new one at any time. */
const lifetimeS = 15 * 60;

export type ResultLinks = {
  /** Path and query, made anew each time. */
  make(run: RunKey): string;
  check(run: RunKey, query: { expires: string; signature: string }): 'good' | 'expired' | 'changed';
};

export function createResultLinks(
  secrets: Pick<SecretBox, 'sign'>,
  clock: { now(): Date },
): ResultLinks {
  const nowS = (): number => Math.floor(clock.now().getTime() / 1_000);
  // Ids hold no slash: the text can be read in one way only.
  const signatureOf = ({ accountId, botId, runId }: RunKey, expires: string): string =>
    secrets.sign('result-link', `${accountId}/${botId}/${runId}/${expires}`).toString('hex');
  return {
    make(run) {
      const expires = String(nowS() + lifetimeS);
      const signature = signatureOf(run, expires);
      const path = [resultPath, run.accountId, run.botId, run.runId].join('/');
      return `${path}?expires=${expires}&signature=${signature}`;
    },
    check(run, { expires, signature }) {
      // As text: reading hexadecimal stops without a word at what is none.
      const given = Buffer.from(signature);
      const expected = Buffer.from(signatureOf(run, expires));
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) return 'changed';
      return nowS() > Number(expires) ? 'expired' : 'good';
    },
  };
}

const loopback = /^(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?$/i;

/**
 * What links begin with: PUBLIC_URL, or else the address that the request came to. The header `Host` is whatever the client
 * says, and a link carries a signature: it is believed only where it leads nowhere but to the client's own machine.
 */
export function linkBase(request: FastifyRequest, publicUrl: string | undefined): string {
  if (publicUrl !== undefined) return publicUrl.replace(/\/+$/, '');
  const { host = '' } = request.raw.headers;
  if (loopback.test(host)) return `http://${host}`;
  const { localAddress = '127.0.0.1', localPort } = request.socket;
  const address = localAddress.replace(/^::ffff:/, '');
  return `http://${address.includes(':') ? `[${address}]` : address}:${localPort ?? 80}`;
}
