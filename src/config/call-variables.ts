// The variables of SIP, RTP, detection, the limits of calls, and notifications.

import { z } from 'zod';
import { dnsServers, networks, port, timerMs } from '../lib/config-values.ts';

export const callVariables = {
  SIP_HOST: z.string().default('127.0.0.1').describe('Address of the embedded SIP engine.'),
  SIP_PORT: port
    .default(5060)
    .describe('Port of the embedded SIP engine, for UDP and TCP. 0 selects a free port.'),
  SIP_ALLOWED_NETWORKS: networks
    .optional()
    .describe(
      'Networks in which requests may dial sip: targets directly, or `none`. Default: loopback on a laptop (see NOTIFY_ALLOWED_NETWORKS) if the sandbox is on, otherwise none.',
    ),
  DNS_SERVERS: dnsServers
    .optional()
    .describe(
      'DNS servers that resolve the trunks’ gateways, e.g. 10.0.0.2,10.0.0.3:5353. Default: the operating system’s, with its hosts file.',
    ),
  TRUNKS_FILE: z
    .string()
    .optional()
    .describe(
      'Path to trunks.yaml, or `none`. Default: sip-config/trunks.yaml if it exists. Without a file, the sandbox is the only trunk.',
    ),
  STT_PROVIDERS_FILE: z
    .string()
    .optional()
    .describe(
      'Path to the speech-to-text providers file (YAML). Default: no providers, so the gateway counts words by their sound.',
    ),
  STT_DEFAULT_PROVIDER: z
    .string()
    .optional()
    .describe(
      'Provider to use if a request names one that is not in the file. Default: the gateway counts words by their sound.',
    ),
  STT_STRICT: z
    .enum(['true', 'false'])
    .default('false')
    .describe('If true, the gateway rejects requests that name an unknown provider with 400.'),
  SANDBOX: z
    .enum(['on', 'off'])
    .optional()
    .describe(
      'Whether the sandbox carrier runs: on or off. Default: on if no trunks are configured.',
    ),
  MEDIA_HOST: z.string().optional().describe('Address of the RTP sockets. Default: SIP_HOST.'),
  MEDIA_PUBLIC_HOST: z
    .string()
    .optional()
    .describe('Address that the gateway writes into SDP. Default: MEDIA_HOST.'),
  MEDIA_PORT_MIN: port.default(20_000).describe('First RTP port.'),
  MEDIA_PORT_MAX: port.default(29_999).describe('Last RTP port.'),
  MEDIA_WORKERS: z.coerce
    .number()
    .int()
    .min(1)
    .max(64)
    .default(1)
    .describe('Number of worker threads for RTP and detection.'),
  RTP_INACTIVITY_TIMEOUT_MS: timerMs
    .min(1_000)
    .default(30_000)
    .describe(
      'The gateway ends an answered call after this time without RTP, unless it is on hold.',
    ),
  RTP_SILENCE_INTERVAL_MS: timerMs
    .min(20)
    .max(5_000)
    .default(200)
    .describe(
      'Interval between silence packets while the gateway has nothing to play (no bot, message or ringback), after the first second. 20 sends continuous silence.',
    ),
  MAX_CALL_DURATION_MS: timerMs
    .min(1_000)
    .default(7_200_000)
    .describe('Maximum duration of a call. Requests can set a lower limit with `maxDurationMs`.'),
  MAX_CONCURRENT_CALLS: z.coerce
    .number()
    .int()
    .min(1)
    .default(2_000)
    .describe(
      'Maximum number of simultaneous calls in this process. Further calls wait in the queue.',
    ),
  MAX_HELD_CALLS_PER_ACCOUNT: z.coerce
    .number()
    .int()
    .min(0)
    .default(100_000)
    .describe(
      'Maximum number of calls of an account that wait for a calling rule. Further ones end as `not-permitted`, with the time at which the rule would permit them.',
    ),
  QUEUE_TIMEOUT_MS: z.coerce
    .number()
    .int()
    .min(1_000)
    .default(300_000)
    .describe('The gateway gives up on a request that has been queued for this long.'),
  NOTIFY_ALLOWED_NETWORKS: networks
    .optional()
    .describe(
      'Private networks that may receive notifications, or `none`. Default: loopback on a laptop (HTTP_HOST and PUBLIC_URL local, no trunks, no DRACHTIO_URL, no DATABASE_URL), otherwise none.',
    ),
  STREAM_ALLOWED_NETWORKS: networks
    .optional()
    .describe(
      'Private networks in which bots may receive audio streams, or `none`. Default: the same as NOTIFY_ALLOWED_NETWORKS.',
    ),
  STREAM_BUFFER_MB: z.coerce
    .number()
    .int()
    .min(1)
    .max(65_536)
    .default(256)
    .describe(
      'Maximum amount of bot audio waiting to be played, in MB, for all bots in this process together.',
    ),
};
