// Distinguishes outages from mistakes. While NATS, a stream or its leader is away, the gateway
// works without it and tries again. A mistake, e.g. a wrong password, ends the start with an error.

import { JetStreamApiCodes, JetStreamApiError } from '@nats-io/jetstream';
import { errors } from '@nats-io/transport-node';

/** No server can be used. `refusal` names the variable to correct, if a server can be reached. */
export class NatsUnavailable extends Error {
  readonly refusal: string | undefined;

  constructor(
    message: string,
    { refusal, ...options }: ErrorOptions & { readonly refusal?: string | undefined } = {},
  ) {
    super(refusal === undefined ? message : `${message}: ${refusal}`, options);
    this.refusal = refusal;
  }
}

/** Codes of nats-server's errors that go away once enough servers of a cluster are up again. */
const passingCodes: ReadonlySet<number> = new Set([
  // We create missing streams ourselves, so a stream is missing only until then.
  JetStreamApiCodes.StreamNotFound,
  // No suitable peers for placement.
  10_005,
  // JetStream system temporarily unavailable: the cluster or the stream has no leader.
  10_008,
  // Stream is offline: the only server that has it is down.
  10_118,
]);
const unavailable = 503;

export function isAway(error: unknown): boolean {
  if (error instanceof JetStreamApiError) {
    return error.status === unavailable || passingCodes.has(error.code);
  }
  if (error instanceof NatsUnavailable) return error.refusal === undefined;
  return (
    error instanceof errors.TimeoutError ||
    error instanceof errors.RequestError ||
    error instanceof errors.ConnectionError ||
    error instanceof errors.ClosedConnectionError
  );
}

/** Returns true if the server or the account doesn't have JetStream. */
export function isWithoutJetStream(error: unknown): boolean {
  // The client doesn't export the class.
  return error instanceof Error && error.name === 'JetStreamNotEnabled';
}
