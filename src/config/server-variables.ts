// The variables of the HTTP API and of the servers that the gateway connects to.

import { z } from 'zod';
import { drachtioUrl, natsUrl, port, postgresUrl, trustedNetworks } from '../lib/config-values.ts';
import { natsNkey } from '../lib/nats-variables.ts';
import { maxTokenMaxTtlS, minTokenMaxTtlS } from '../store/apps/app-credentials.ts';
import { fileFor } from './secret-variables.ts';

/** Enough for some 10,000 calls, so that a small number can't be mistaken for megabytes. */
const minNatsMaxBytes = 64 * 1_024 * 1_024;

export const serverVariables = {
  HTTP_HOST: z.string().default('127.0.0.1').describe('Address that the API listens on.'),
  HTTP_PORT: port.default(3000).describe('Port of the API. 0 selects a free port.'),
  PUBLIC_URL: z
    .url('must be an absolute URL, e.g. https://offhook.example.com')
    .optional()
    .describe('Base URL under which clients reach the API.'),
  TRUSTED_PROXIES: trustedNetworks
    .optional()
    .describe(
      'Networks of trusted proxies. The gateway reads the client address from their X-Forwarded-For header. Default: no trusted proxies.',
    ),
  TOKEN_MAX_TTL_S: z.coerce
    .number()
    .int()
    .min(minTokenMaxTtlS)
    .max(maxTokenMaxTtlS)
    .default(86_400)
    .describe('Maximum lifetime of app tokens, in seconds. Applies to apps created from now on.'),
  DATA_DIR: z
    .string()
    .default('.offhook')
    .describe('Folder for the data of the embedded parts and for runtime.json.'),
  DATABASE_URL: postgresUrl
    .optional()
    .describe('URL of PostgreSQL. Default: an embedded PGlite under DATA_DIR.'),
  DATABASE_URL_FILE: fileFor('DATABASE_URL'),
  NATS_URL: natsUrl
    .optional()
    .describe(
      'URL of a NATS server with JetStream. Default: a private nats-server under DATA_DIR.',
    ),
  NATS_URL_FILE: fileFor('NATS_URL'),
  NATS_CREDS: z
    .string()
    .optional()
    .describe('Path of a NATS credentials file (.creds) with a user’s JWT and nkey seed.'),
  NATS_NKEY: natsNkey
    .optional()
    .describe('Seed of the nkey with which the gateway signs in to NATS (SU…).'),
  NATS_NKEY_FILE: fileFor('NATS_NKEY'),
  NATS_CA: z
    .string()
    .optional()
    .describe(
      'Path of the CA certificates (PEM) that the NATS servers’ certificates must come from. Requires TLS. Default: the system’s CAs.',
    ),
  NATS_CERT: z
    .string()
    .optional()
    .describe('Path of the client certificate (PEM) for NATS. Requires TLS, and NATS_KEY.'),
  NATS_KEY: z.string().optional().describe('Path of the private key (PEM) of NATS_CERT.'),
  NATS_PREFIX: z
    .string()
    .regex(/^[A-Za-z0-9_-]+$/, 'must be letters, digits, _ and - only')
    .default('offhook')
    .describe('First token of all NATS subjects and prefix of all stream names.'),
  NATS_REPLICAS: z
    .enum(['1', '3', '5'], 'must be 1, 3 or 5')
    .optional()
    .describe(
      'How many servers of a NATS cluster keep each stream that the gateway creates: 1, 3 or 5. Default: 3 in a cluster, otherwise 1.',
    ),
  NATS_MAX_BYTES: z.coerce
    .number()
    .int()
    .min(minNatsMaxBytes)
    .optional()
    .describe(
      'Maximum size of the calls stream, in bytes. The oldest events are removed first. The other streams get half as much in total. Default: no limit.',
    ),
  NATS_SERVER_BIN: z
    .string()
    .optional()
    .describe('Path to the nats-server program. Default: the gateway searches PATH.'),
  DRACHTIO_URL: drachtioUrl
    .optional()
    .describe(
      'Control connections to drachtio servers, e.g. tcp://:secret@host:9022, separated by commas. Default: the embedded SIP engine.',
    ),
  DRACHTIO_URL_FILE: fileFor('DRACHTIO_URL'),
};
