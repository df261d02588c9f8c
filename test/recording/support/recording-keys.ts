// Key pairs of both kinds, as an account makes them.

import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import {
  readPublicKey,
  type WrappedKey,
  wrapContentKey,
} from '../../../src/recording/formats/key-wrapping.ts';

export type KeyPair = { readonly publicPem: string; readonly privateKey: KeyObject };

function pairOf(type: 'rsa' | 'x25519'): KeyPair {
  const { publicKey, privateKey } =
    type === 'rsa'
      ? generateKeyPairSync('rsa', { modulusLength: 2_048 })
      : generateKeyPairSync('x25519');
  return { publicPem: publicKey.export({ type: 'spki', format: 'pem' }).toString(), privateKey };
}

export const keyPairs = (): [string, KeyPair][] => [
  ['x25519', pairOf('x25519')],
  ['rsa', pairOf('rsa')],
];

export function wrappedFor({ publicPem }: KeyPair, contentKey: Uint8Array): WrappedKey {
  const read = readPublicKey(publicPem);
  if (!read.ok) throw new Error(read.problem);
  return wrapContentKey(contentKey, read.key);
}
