// Puts the errors of TLS connections into words. These words become the reason of a call's failure,
// so they begin with `TLS: `, and never contain more of the far end's text than its names.

import { WrongNameError } from './server-identity.ts';
import { NotSipError } from './stream-connections.ts';

const noTls = 'the far end does not speak TLS';
const noCommonVersion = 'there is no TLS version that both ends support';
const clientRefused = 'the far end does not accept our client certificate';
const unknownCa = 'certificate is from an unknown CA';

/** Node's error codes: from certificate checks, from OpenSSL, and from the system. */
const wordsByCode: ReadonlyMap<string, string> = new Map([
  ['CERT_HAS_EXPIRED', 'certificate has expired'],
  ['CERT_NOT_YET_VALID', 'certificate is not valid yet'],
  ['CERT_REVOKED', 'certificate has been revoked'],
  ['CERT_REJECTED', 'certificate is not meant for TLS servers'],
  ['CERT_UNTRUSTED', unknownCa],
  ['CERT_SIGNATURE_FAILURE', 'the signature of the certificate is wrong'],
  ['CERT_CHAIN_TOO_LONG', 'the chain of certificates is too long'],
  ['PATH_LENGTH_EXCEEDED', 'the chain of certificates is too long'],
  ['INVALID_CA', 'certificate comes from something that is not a CA'],
  ['INVALID_PURPOSE', 'certificate is not meant for TLS servers'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'self-signed certificate'],
  ['SELF_SIGNED_CERT_IN_CHAIN', unknownCa],
  ['UNABLE_TO_GET_ISSUER_CERT', unknownCa],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', unknownCa],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', unknownCa],
  ['ERR_SSL_WRONG_VERSION_NUMBER', noTls],
  ['ERR_SSL_PACKET_LENGTH_TOO_LONG', noTls],
  ['ERR_SSL_RECORD_TOO_LARGE', noTls],
  ['ERR_SSL_UNEXPECTED_MESSAGE', 'the far end breaks the rules of TLS'],
  ['ERR_SSL_UNSUPPORTED_PROTOCOL', noCommonVersion],
  ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', noCommonVersion],
  [
    'ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE',
    'the far end refuses the handshake (no common cipher, or it requires a client certificate)',
  ],
  ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'the far end requires a client certificate'],
  ['ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE', clientRefused],
  ['ERR_SSL_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE', clientRefused],
  ['ERR_SSL_SSLV3_ALERT_CERTIFICATE_REVOKED', clientRefused],
  ['ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED', clientRefused],
  ['ERR_SSL_SSLV3_ALERT_CERTIFICATE_UNKNOWN', clientRefused],
  ['ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', clientRefused],
  ['ERR_SSL_TLSV1_ALERT_ACCESS_DENIED', clientRefused],
  ['ERR_SSL_TLSV1_ALERT_DECRYPT_ERROR', clientRefused],
  ['ERR_SSL_TLSV1_UNRECOGNIZED_NAME', 'the far end does not know this server name'],
  ['ECONNREFUSED', 'connection refused'],
  ['ECONNRESET', 'the far end closed the connection'],
  ['EPIPE', 'the far end closed the connection'],
  ['ETIMEDOUT', 'no answer'],
  ['EHOSTUNREACH', 'the host cannot be reached'],
  ['ENETUNREACH', 'the network cannot be reached'],
  ['EMFILE', 'too many open files'],
  ['ENFILE', 'too many open files'],
]);

/** The far end didn't complete the connection and the handshake in time. */
export class HandshakeTimeoutError extends Error {}

/** We don't open more connections. */
export class TooManyConnectionsError extends Error {}

/** @param error undefined if the far end closed the connection without an error */
export function tlsReason(error: Error | undefined): string {
  return `TLS: ${words(error)}`;
}

function words(error: Error | undefined): string {
  if (error === undefined) return 'the far end closed the connection';
  if (error instanceof WrongNameError) return error.message;
  if (error instanceof NotSipError) return 'the far end sent something other than SIP';
  if (error instanceof HandshakeTimeoutError) return 'the handshake took too long';
  if (error instanceof TooManyConnectionsError) return 'too many connections are open';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  if (code === undefined) return 'the connection failed';
  return wordsByCode.get(code) ?? `the connection failed (${code})`;
}
