// How the gateway signs in to NATS and how it checks the server: a credentials file or an nkey, and
// TLS with our own CA and a client certificate. The files are read again at each connection, so
// renewed credentials and certificates apply without a restart.

import { readFileSync } from 'node:fs';
import { checkServerIdentity, createSecureContext } from 'node:tls';
import {
  type ConnectionOptions,
  credsAuthenticator,
  nkeyAuthenticator,
  nkeys,
} from '@nats-io/transport-node';

/** The values of NATS_CREDS, NATS_NKEY, NATS_CA, NATS_CERT, NATS_KEY. All but `nkey` are paths. */
export type NatsAccess = {
  readonly creds?: string | undefined;
  readonly nkey?: string | undefined;
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
};

type AccessOptions = Pick<
  ConnectionOptions,
  'servers' | 'user' | 'pass' | 'token' | 'authenticator' | 'tls'
> & { readonly servers: string[] };

/**
 * Returns the client's options for these URLs.
 *
 * @throws Error that names the variable if a file or key cannot be used
 */
export function accessOptions(text: string, access: NatsAccess = {}): AccessOptions {
  const urls = urlsOf(text);
  checkAccess(access);
  return {
    servers: urls.map((url) => (url.port === '' ? url.hostname : url.host)),
    ...credentialsOf(urls),
    ...authenticatorOf(access),
    ...tlsOf(urls, access),
  };
}

/** Returns the URLs without user, password and token. */
export function withoutCredentials(text: string): string {
  return urlsOf(text)
    .map(({ protocol, host }) => `${protocol}//${host}`)
    .join(',');
}

/**
 * Checks the files and the key without a server.
 *
 * @throws Error that names the variable, and never quotes a value
 */
export function checkAccess({ creds, nkey, ca, cert, key }: NatsAccess): void {
  if (creds !== undefined) checkCreds(creds);
  if (nkey !== undefined) checkNkey(nkey);
  if (ca !== undefined) checkPem('NATS_CA', ca, (text) => ({ ca: text }));
  if (cert === undefined || key === undefined) return;
  checkPem('NATS_CERT', cert, (text) => ({ cert: text }));
  checkPem('NATS_KEY', key, (text) => ({ key: text }));
  try {
    createSecureContext({ cert: readFileSync(cert), key: readFileSync(key) });
  } catch (error) {
    throw new Error(`NATS_KEY: ${key} is not the key of the certificate NATS_CERT`, {
      cause: error,
    });
  }
}

function urlsOf(text: string): readonly URL[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map((part) => new URL(part.includes('://') ? part : `nats://${part}`));
}

/** Separates the credentials from the URLs, because the client ignores credentials in URLs. */
function credentialsOf(urls: readonly URL[]): Pick<AccessOptions, 'user' | 'pass' | 'token'> {
  const url = urls.find(({ username }) => username !== '');
  if (url === undefined) return {};
  const name = decodeURIComponent(url.username);
  // `nats://token@host`
  if (url.password === '') return { token: name };
  return { user: name, pass: decodeURIComponent(url.password) };
}

function authenticatorOf({ creds, nkey }: NatsAccess): Pick<AccessOptions, 'authenticator'> {
  if (creds !== undefined) {
    // The client closes for good if its authenticator throws, so while the file can't be read, we
    // use the last credentials.
    let last = readFileSync(creds);
    const read = (): Uint8Array => {
      const text = tryTo(() => readFileSync(creds));
      if (text !== undefined && tryTo(() => parseCreds(text)) !== undefined) last = text;
      return last;
    };
    return { authenticator: credsAuthenticator(read) };
  }
  if (nkey === undefined) return {};
  return { authenticator: nkeyAuthenticator(Buffer.from(nkey)) };
}

/** TLS is required if a URL says `tls`, or if any variable for TLS is set. */
function tlsOf(urls: readonly URL[], access: NatsAccess): Pick<AccessOptions, 'tls'> {
  const { ca: caFile, cert: certFile, key: keyFile } = access;
  const isRequired = urls.some(({ protocol }) => protocol === 'tls:');
  const hosts = urls.map(({ hostname }) => hostname.replace(/^\[|\]$/g, ''));
  if (!isRequired && caFile === undefined && certFile === undefined) return {};
  // The client's type lacks this option, but the client passes it on to Node.
  const identity: object = { checkServerIdentity: nameChecker(hosts) };
  return {
    tls: {
      ...identity,
      ...(caFile === undefined ? {} : { caFile }),
      ...(certFile === undefined ? {} : { certFile }),
      ...(keyFile === undefined ? {} : { keyFile }),
    },
  };
}

/**
 * If the host is an IP address, the client doesn't pass any name to Node, which then compares the
 * certificate with `localhost`. In that case, we compare it with the hosts of NATS_URL instead.
 */
function nameChecker(hosts: readonly string[]): typeof checkServerIdentity {
  return (host, certificate) => {
    const [first, ...others] = (host === 'localhost' ? hosts : [host]).map((name) =>
      checkServerIdentity(name, certificate),
    );
    return others.includes(undefined) ? undefined : first;
  };
}

function checkCreds(path: string): void {
  const text = readNamed('NATS_CREDS', path);
  const parsed = tryTo(() => parseCreds(text));
  if (parsed === undefined) {
    throw new Error(
      `NATS_CREDS: ${path} is not a credentials file with a user’s JWT and its nkey seed`,
    );
  }
}

/** @throws Error if the text isn't a credentials file */
function parseCreds(text: Uint8Array): unknown {
  return credsAuthenticator(text)('');
}

function checkNkey(seed: string): void {
  if (tryTo(() => nkeys.fromSeed(Buffer.from(seed)).getPublicKey())?.startsWith('U') !== true)
    throw new Error('NATS_NKEY: is not a valid seed of a user’s nkey (SU…)');
}

function checkPem(
  variable: string,
  path: string,
  toOptions: (text: Buffer) => Parameters<typeof createSecureContext>[0],
): void {
  const text = readNamed(variable, path);
  try {
    if (!text.includes('-----BEGIN ')) throw new Error('it does not contain -----BEGIN');
    createSecureContext(toOptions(text));
  } catch (error) {
    throw new Error(`${variable}: ${path} is not a PEM file that can be used`, { cause: error });
  }
}

function readNamed(variable: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new Error(`${variable}: ${path} cannot be read`, { cause: error });
  }
}

function tryTo<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
