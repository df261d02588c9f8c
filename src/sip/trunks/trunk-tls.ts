// A trunk's TLS settings, for the embedded SIP engine. drachtio-server has its own configuration.
// The files are read whenever the trunks are, and mistakes in them are mistakes in the trunks file.

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { errorForPeople } from '../../lib/error-for-log.ts';
import type { Problem, TrunkEntry } from './trunk-schema.ts';

export type TrunkTls = {
  /** CA certificates (PEM) that a gateway's certificate must come from. Default: the system's. */
  readonly ca?: string;
  /** Client certificate (PEM) with its chain, and its key. */
  readonly cert?: string;
  readonly key?: string;
  /** Name to ask for (SNI) and to verify. Default: the gateway's host. */
  readonly serverName?: string;
};

/** Reads a file that the trunks file names. */
export type ReadTrunkFile = (path: string) => string;

export type TlsOfTrunk = { readonly tls?: TrunkTls; readonly problems: readonly Problem[] };

/** Reads and checks the files of a trunk. `tls` is undefined if no gateway can use TLS. */
export function readTrunkTls(
  { tls = {}, gateways }: TrunkEntry,
  index: number,
  readFile: ReadTrunkFile,
): TlsOfTrunk {
  if (!gateways.some(mayUseTls)) return { problems: [] };
  const problems: Problem[] = [];
  const read = (
    field: 'caFile' | 'certFile' | 'keyFile',
    check: (text: string) => string | undefined,
  ): string | undefined => {
    const path = tls[field];
    if (path === undefined) return undefined;
    const found = textOf(path, readFile);
    const message = 'error' in found ? found.error : check(found.text);
    if (message !== undefined) {
      problems.push({ path: ['trunks', index, 'tls', field], message });
      return undefined;
    }
    return 'text' in found ? found.text : undefined;
  };
  const ca = read('caFile', certificateProblem);
  const cert = read('certFile', certificateProblem);
  const key = read('keyFile', (text) => keyProblem(text, cert));
  const { serverName } = tls;
  return {
    problems,
    tls: {
      ...(ca !== undefined && { ca }),
      ...(cert !== undefined && { cert }),
      ...(key !== undefined && { key }),
      ...(serverName !== undefined && { serverName }),
    },
  };
}

/** Without a transport and a port, NAPTR records may choose TLS. */
function mayUseTls({ transport, host, port }: TrunkEntry['gateways'][number]): boolean {
  return transport === 'tls' || (transport === undefined && port === undefined && isIP(host) === 0);
}

function textOf(
  path: string,
  readFile: ReadTrunkFile,
): { readonly text: string } | { readonly error: string } {
  try {
    return { text: readFile(path) };
  } catch (error) {
    return { error: `cannot be read: ${errorForPeople(error).split('\n', 1)[0]}` };
  }
}

const pemCertificate = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** OpenSSL skips what it can't read in a list of CAs, so we check every certificate ourselves. */
function certificateProblem(text: string): string | undefined {
  const found = text.match(pemCertificate) ?? [];
  if (found.length === 0) return 'contains no certificate in PEM format';
  const broken = found.findIndex((pem) => !isCertificate(pem));
  return broken < 0 ? undefined : `certificate ${broken + 1} in the file cannot be read`;
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}

function keyProblem(text: string, cert: string | undefined): string | undefined {
  try {
    const key = createPrivateKey(text);
    if (cert === undefined || new X509Certificate(cert).checkPrivateKey(key)) return undefined;
    return 'is not the key of the certificate in certFile';
  } catch {
    // The error may quote the key, so we leave it out.
    return /ENCRYPTED/.test(text)
      ? 'contains an encrypted key. The gateway needs one without a passphrase'
      : 'contains no private key in PEM format';
  }
}
