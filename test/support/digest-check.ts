// The server's side of digest authentication: reads the credentials in a request and computes the
// response that they should contain. It's written from RFC 7616, without the gateway's code.

import { createHash } from 'node:crypto';
import type { RawMessage } from './raw-callee.ts';

/** Parameters of one header line, without their quotes. */
export type DigestParameters = Readonly<Record<string, string>>;

/** Returns the credentials in each header line with this name. */
export function credentialsIn(message: RawMessage, header: string): readonly DigestParameters[] {
  return (message.headers.get(header.toLowerCase()) ?? []).map(parametersOf);
}

/** Returns the parameters of a header value that begins with `Digest`. */
export function parametersOf(value: string): DigestParameters {
  if (!/^Digest /.test(value)) throw new Error(`no digest credentials: ${value}`);
  const parameters = value.slice(7).matchAll(/([\w*]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/g);
  return Object.fromEntries(
    [...parameters].map(([, name = '', quoted, plain = '']) => [name, quoted ?? plain]),
  );
}

/** Computes the response that belongs to the other parameters. */
export function responseFor(
  given: DigestParameters,
  { username, password }: { readonly username: string; readonly password: string },
  { method, body = '' }: { readonly method: string; readonly body?: string },
): string {
  const { realm, nonce, uri, qop, nc, cnonce, algorithm = 'MD5' } = given;
  const names: Record<string, string> = {
    MD5: 'md5',
    'SHA-256': 'sha256',
    'SHA-512-256': 'sha512-256',
  };
  const name = names[algorithm.replace(/-sess$/, '')];
  if (name === undefined) throw new Error(`unknown algorithm ${algorithm}`);
  const H = (text: string) => createHash(name).update(text).digest('hex');
  const KD = (secret: string, data: string) => H(`${secret}:${data}`);
  const secret = H(`${username}:${realm}:${password}`);
  const A1 = algorithm.endsWith('-sess') ? KD(secret, `${nonce}:${cnonce}`) : secret;
  const A2 = qop === 'auth-int' ? `${method}:${uri}:${H(body)}` : `${method}:${uri}`;
  return qop === undefined
    ? KD(A1, `${nonce}:${H(A2)}`)
    : KD(A1, `${nonce}:${nc}:${cnonce}:${qop}:${H(A2)}`);
}
