// Turns DATABASE_URL into the options of a connection. We handle TLS ourselves, because `pg` reads
// the certificates' files for each connection and throws if one is missing, which would end the
// process while somebody replaces a file. Its modes also depend on its version.
//
// Every mode that uses TLS checks the server's certificate and its name, except for `no-verify`.
// libpq's `require` doesn't check anything, and its `verify-ca` doesn't check the name.

import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import type { ClientConfig } from 'pg';
import { hasCode } from '../sql-errors.ts';

/** Returns the text of a file as it is now, or as it was last if it can't be read. */
type Followed = () => string;

/** DATABASE_URL names something that doesn't exist. */
export class AddressError extends Error {}

/**
 * Returns the options that lead to the database.
 *
 * @throws AddressError that names the parameter of DATABASE_URL whose file can't be read
 */
export function addressOptions(databaseUrl: string): ClientConfig {
  const [address = '', ...rest] = databaseUrl.split('?');
  const query = new URLSearchParams(rest.join('?'));
  const asked = (name: string): string | undefined => {
    const value = query.get(name) ?? undefined;
    query.delete(name);
    return value;
  };
  const mode = asked('sslmode');
  const files = { ca: asked('sslrootcert'), cert: asked('sslcert'), key: asked('sslkey') };
  // pg replaces the options of TLS by its own if the URL has one of these.
  const isDirect = asked('sslnegotiation') === 'direct';
  const usesTls = mode ?? files.ca ?? files.cert;
  if (usesTls === undefined && !isDirect) return { connectionString: databaseUrl };
  const connectionString = query.size === 0 ? address : `${address}?${query.toString()}`;
  if (mode === 'disable') return { connectionString, ssl: false };
  return {
    connectionString,
    ...(isDirect ? { sslnegotiation: 'direct' } : {}),
    ssl: tlsOptions({
      isVerified: mode !== 'no-verify',
      // libpq's word for the certificate authorities that the system trusts.
      ca: files.ca === 'system' ? undefined : followed('sslrootcert', files.ca),
      cert: followed('sslcert', files.cert),
      key: followed('sslkey', files.key),
    }),
  };
}

type Certificates = {
  readonly isVerified: boolean;
  readonly ca: Followed | undefined;
  readonly cert: Followed | undefined;
  readonly key: Followed | undefined;
};

/** pg copies the options for each connection, so each connection uses the current files. */
function tlsOptions({ isVerified, ca, cert, key }: Certificates): ConnectionOptions {
  return {
    rejectUnauthorized: isVerified,
    get ca() {
      return ca?.();
    },
    get cert() {
      return cert?.();
    },
    get key() {
      return key?.();
    },
  };
}

function followed(parameter: string, path: string | undefined): Followed | undefined {
  if (path === undefined) return undefined;
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    throw new AddressError(`DATABASE_URL: ${parameter}: ${path} cannot be read`, { cause });
  }
  return () => {
    try {
      text = readFileSync(path, 'utf8');
    } catch {
      // Somebody is replacing the file. If the old text has become invalid, the connection fails.
    }
    return text;
  };
}

const untrusted =
  /^(SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_.*|CERT_(SIGNATURE_FAILURE|UNTRUSTED|REJECTED))$/;

/**
 * Says in plain words why TLS failed.
 *
 * @returns undefined if the error has another reason
 */
export function tlsProblem(error: unknown): string | undefined {
  if (hasCode(error, /^ERR_TLS_CERT_ALTNAME_INVALID$/)) {
    return 'the certificate of the server is for another name than the one in the URL';
  }
  if (hasCode(error, untrusted)) {
    return 'the certificate of the server is not signed by an authority in sslrootcert (without it: by one that Node.js trusts)';
  }
  if (hasCode(error, /^CERT_(HAS_EXPIRED|NOT_YET_VALID)$/)) {
    return 'the certificate of the server has expired, or is not valid yet';
  }
  if (hasCode(error, /^ERR_SSL_.*ALERT/)) {
    return 'the server refused the TLS connection, perhaps because it does not trust sslcert';
  }
  if (error instanceof Error && error.message === 'The server does not support SSL connections') {
    return 'the URL asks for TLS, but the server does not offer it (ssl = on in postgresql.conf)';
  }
  return undefined;
}
