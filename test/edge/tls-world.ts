// A carrier's CA, and a trunk to a gateway that has a certificate of this CA.

import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Trunk } from '../../src/sip/trunks/trunks.ts';
import { type Certificate, createCa, type TestCa } from '../support/certificates.ts';

export type Authority = AsyncDisposable & {
  readonly folder: string;
  readonly ca: TestCa;
  /** A certificate for localhost. */
  readonly server: Certificate;
};

export async function openAuthority(): Promise<Authority> {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-tls-'));
  const ca = await createCa(folder, 'carrier-ca');
  return {
    folder,
    ca,
    server: await ca.issue('localhost'),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  };
}

/** A trunk with one gateway, as the trunks file gives it to an embedded engine. */
export function tlsTrunk(
  port: number,
  ca: TestCa,
  tls: Trunk['tls'] = {},
  host = 'localhost',
): Partial<Trunk> {
  return {
    gateways: [{ host, port, transport: 'tls', priority: 1, weight: 1 }],
    tls: { ca: readFileSync(ca.ca, 'utf8'), ...tls },
  };
}
