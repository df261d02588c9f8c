// The variables of the process: its secrets' key, its name, retention, shutdown, logs and traces.

import { z } from 'zod';
import { timerMs } from '../lib/config-values.ts';
import { keyForm, keyOf } from '../store/secret-keys.ts';
import { fileFor } from './secret-variables.ts';

export const processVariables = {
  SECRETS_KEY: z
    .string()
    .refine((text) => keyOf(text) !== undefined, keyForm)
    .optional()
    .describe(
      'Key that encrypts stored secrets: 32 bytes as 64 hex digits or base64. Required with DATABASE_URL.',
    ),
  SECRETS_KEY_FILE: fileFor('SECRETS_KEY'),
  SECRETS_KEY_PREVIOUS: z
    .string()
    .refine((text) => keyOf(text) !== undefined, keyForm)
    .optional()
    .describe('The key before SECRETS_KEY, while you change the key. Opens stored secrets too.'),
  SECRETS_KEY_PREVIOUS_FILE: fileFor('SECRETS_KEY_PREVIOUS'),
  NODE_ID: z
    .string()
    .regex(/^[A-Za-z0-9._-]{1,64}$/, 'must be up to 64 letters, digits, . _ -')
    .optional()
    .describe('Name of this process. Default: the host name.'),
  NODE_LEASE_MS: timerMs
    .min(1_000)
    .default(8_000)
    .describe(
      'An outage of the database that lasts this long costs no node its lease. A node that dies is noticed a few seconds later than this, at 8000 within 13 s. Other nodes then end its calls. After a database outage, and after their own start, they wait for this time once more.',
    ),
  EVENT_RETENTION_DAYS: z.coerce
    .number()
    .min(0.01)
    .default(30)
    .describe(
      'How long calls are kept. Their events and notifications are deleted a whole day at a time, so up to a day later.',
    ),
  RECORD_RETENTION_DAYS: z.coerce
    .number()
    .min(0.01)
    .default(1_826)
    .describe(
      'How long the records of calls are kept (src/rules/records.md), apart from the calls themselves. Default: five years, as 16 CFR 310.5 asks.',
    ),
  CONTEXT_RETENTION_HOURS: z.coerce
    .number()
    .min(0.01)
    .default(24)
    .describe('How long a call context is kept after its last change.'),
  HISTORY_RETENTION_DAYS: z.coerce
    .number()
    .min(0.01)
    .default(365)
    .describe(
      'How long conversation history messages are kept. Published conversations and test runs are kept this long after their last change.',
    ),
  SHUTDOWN_TIMEOUT_MS: timerMs
    .min(0)
    .optional()
    .describe(
      'How long running calls may continue after SIGTERM. The process ends within 5 s after that. Default: 30000, or 5000 on a terminal.',
    ),
  SHUTDOWN_DELAY_MS: timerMs
    .min(0)
    .default(0)
    .describe(
      'How long the process keeps accepting requests after SIGTERM. Meanwhile /ready responds with 503, so a load balancer can take the process out of service first.',
    ),
  // The gateway searches PATH for nats-server. There's no description here, because the pages
  // shouldn't list this variable.
  PATH: z.string().default(''),
  LOG_CALLS: z
    .enum(['true', 'false'])
    .optional()
    .describe(
      'Whether to print a readable line for each step of a call and each notification attempt: true or false. Default: true on a terminal.',
    ),
  OTEL_EXPORTER_OTLP_ENDPOINT: z
    .url('must be an absolute URL, e.g. http://127.0.0.1:4318')
    .optional()
    .describe(
      'URL of an OpenTelemetry collector that accepts OTLP over HTTP, e.g. http://127.0.0.1:4318. OTEL_EXPORTER_OTLP_HEADERS also applies. Default: no traces.',
    ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: z
    .url('must be an absolute URL')
    .optional()
    .describe(
      'Full URL for traces, including the path. Default: /v1/traces below OTEL_EXPORTER_OTLP_ENDPOINT.',
    ),
  OTEL_SERVICE_NAME: z.string().default('offhook').describe('The `service.name` of the traces.'),
  LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe('Lowest severity that is logged: trace, debug, info, warn, error, fatal or silent.'),
};
