// Explains why a NATS server that can be reached refuses us, or why we refuse the server. Each
// reason names the variable to correct, and none quotes a value.

import { readFileSync } from 'node:fs';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { within } from '../lib/within.ts';
import type { NatsAccess } from './nats-access.ts';

/** A server refuses a client certificate within milliseconds after the handshake. */
const refusalTimeoutMs = 400;

const untrusted: ReadonlySet<string | undefined> = new Set([
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'CERT_SIGNATURE_FAILURE',
]);

/**
 * @param server `host:port` of the server that could not be used
 * @returns undefined if the error has another cause, e.g. that no server listens
 */
export async function explainRefusal(
  error: unknown,
  server: string,
  access: NatsAccess,
): Promise<string | undefined> {
  const known = reasonOf(error, access);
  if (known !== undefined || !/time-?out/i.test(innermost(error).message)) return known;
  // With TLS 1.3 the server judges our certificate after the handshake, and the client waits for
  // the rest of its time-out without a reason. So we connect once more and wait for the reason.
  const refusal = await within(refusalOf(server, access), refusalTimeoutMs);
  return refusal === undefined ? undefined : reasonOf(refusal, access);
}

function reasonOf(error: unknown, access: NatsAccess): string | undefined {
  const { code, message } = innermost(error);
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return 'NATS_URL: the server’s certificate is for another host';
  if (code === 'CERT_HAS_EXPIRED') return 'NATS_URL: the server’s certificate has expired';
  if (untrusted.has(code)) {
    return access.ca === undefined
      ? 'NATS_CA is not set, and the system’s CAs did not issue the server’s certificate'
      : 'NATS_CA: this CA did not issue the server’s certificate';
  }
  if (/alert (certificate|bad certificate|unknown ca|handshake failure)/i.test(message)) {
    return access.cert === undefined
      ? 'NATS_CERT is not set, and the server requires a client certificate'
      : 'NATS_CERT: the server refuses the client certificate';
  }
  if (message.includes("does not support 'tls'")) return 'NATS_URL: the server does not offer TLS';
  if (!/authoriz|authentic|credentials/i.test(message)) return undefined;
  return `${signedInBy(access)}: the server refused it (${message})`;
}

function signedInBy({ creds, nkey, cert }: NatsAccess): string {
  if (creds !== undefined) return 'NATS_CREDS';
  if (nkey !== undefined) return 'NATS_NKEY';
  // A server with `verify_and_map` takes the user from the certificate.
  return cert === undefined ? 'NATS_URL' : 'NATS_URL or NATS_CERT';
}

function innermost(error: unknown): {
  readonly code: string | undefined;
  readonly message: string;
} {
  if (!(error instanceof Error)) return { code: undefined, message: String(error) };
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  if (error.cause instanceof Error && code === undefined) return innermost(error.cause);
  return { code, message: error.message };
}

/** Resolves to the error with which the server ends a TLS connection with our certificate. */
function refusalOf(server: string, access: NatsAccess): Promise<unknown> {
  const { hostname, port } = new URL(`http://${server}`);
  const socket = connectTcp(port === '' ? 4_222 : Number(port), hostname.replace(/^\[|\]$/g, ''));
  return new Promise<unknown>((resolve) => {
    socket.once('error', resolve);
    // The server greets first, without TLS.
    socket.once('data', () => startTls(socket, access).once('error', resolve));
  }).finally(() => socket.destroy());
}

/** Doesn't check the server's certificate, because nothing secret is sent. */
function startTls(socket: Socket, { cert, key }: NatsAccess) {
  return connectTls({
    socket,
    rejectUnauthorized: false,
    ...(cert === undefined ? {} : { cert: readFileSync(cert) }),
    ...(key === undefined ? {} : { key: readFileSync(key) }),
  }).resume();
}
