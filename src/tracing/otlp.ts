// Sends spans in batches to an OpenTelemetry collector, as OTLP/HTTP with JSON. We load this module
// only if a collector is configured.

import { DiagLogLevel, diag, type Tracer } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { Logger } from '../lib/logger.ts';

export type OtlpOptions = {
  /** URL of the collector's trace endpoint, `…/v1/traces`. */
  readonly url: string;
  readonly serviceName: string;
  readonly version: string;
  readonly nodeId: string;
  readonly logger: Logger;
};

export type Otlp = {
  readonly tracer: Tracer;
  /** Sends the waiting spans within the export time-out, then stops. */
  close(): Promise<void>;
};

/**
 * If this many spans are in memory, we drop further spans, because an unreachable collector
 * shouldn't cost us more than some traces.
 */
const maxQueueSize = 8_192;
const maxExportBatchSize = 512;
const scheduledDelayMillis = 1_000;
const exportTimeoutMillis = 5_000;

export function openOtlp({ url, serviceName, version, nodeId, logger }: OtlpOptions): Otlp {
  diag.setLogger(
    {
      error: (message) => logger.warn({ reason: message.slice(0, 200) }, 'cannot export spans'),
      ...{ warn: nothing, info: nothing, debug: nothing, verbose: nothing },
    },
    DiagLogLevel.ERROR,
  );
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({
      'service.name': serviceName,
      'service.version': version,
      'service.instance.id': nodeId,
    }),
    spanProcessors: [
      new BatchSpanProcessor(new OTLPTraceExporter({ url, timeoutMillis: exportTimeoutMillis }), {
        ...{ maxQueueSize, maxExportBatchSize, scheduledDelayMillis, exportTimeoutMillis },
      }),
    ],
  });
  return { tracer: provider.getTracer('offhook', version), close: () => provider.shutdown() };
}

function nothing(): void {}
