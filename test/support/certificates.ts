// Makes certificates with openssl: a CA, and certificates that it issues to servers and clients.

import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

export type Certificate = { readonly cert: string; readonly key: string };

export type TestCa = {
  /** Path of the CA's own certificate. */
  readonly ca: string;
  /**
   * @param names e.g. `DNS:localhost,IP:127.0.0.1`
   * @param days how long the certificate is valid. Negative: it has expired. Default: 2
   */
  issue(name: string, names?: string, days?: number): Promise<Certificate>;
};

export async function createCa(folder: string, name: string): Promise<TestCa> {
  const ca = join(folder, `${name}.pem`);
  const caKey = join(folder, `${name}-key.pem`);
  await run('openssl', [
    ...['req', '-x509', ...newKey, '-keyout', caKey, '-out', ca, '-days', '2'],
    ...['-subj', `/CN=${name}`],
  ]);
  return {
    ca,
    issue: async (subject, names = `DNS:${subject}`, days = 2) => {
      const path = join(folder, `${name}-${subject}`);
      const [cert, key, extensions] = [`${path}.pem`, `${path}-key.pem`, `${path}.ext`];
      await writeFile(extensions, `subjectAltName=${names}\n`);
      await run('openssl', [
        ...['req', '-new', ...newKey, '-keyout', key, '-out', `${path}.csr`],
        ...['-subj', `/CN=${subject}`],
      ]);
      await run('openssl', [
        ...['x509', '-req', '-in', `${path}.csr`, '-CA', ca, '-CAkey', caKey, '-CAcreateserial'],
        ...['-out', cert, '-days', String(days), '-extfile', extensions],
      ]);
      return { cert, key };
    },
  };
}
