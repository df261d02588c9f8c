// Spans to an OpenTelemetry collector, by OTLP over HTTP as JSON, in batches. Loaded only where one is configured.

import { DiagLogLevel, diag, type Tracer } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { Logger } from '../lib/logger.ts';

export type OtlpOptions = {
  /** Of the traces: `…/v1/traces`. */
  readonly url: string;
  readonly serviceName: string;
  readonly version: string;
  readonly nodeId: string;
  readonly logger: Logger;
};

export type Otlp = {
  readonly tracer: Tracer;
  /** What is waiting is sent, if that is possible within some seconds. */
  close(): Promise<void>;
};

/** Spans in memory; beyond it new ones are dropped: a collector that is away costs traces, and nothing else. */
const maxQueueSize = 8_192;
const maxExportBatchSize = 512;
const scheduledDelayMillis = 1_000;
const exportTimeoutMillis = 5_000;

export function openOtlp({ url, serviceName, version, nodeId, logger }: OtlpOptions): Otlp {
  diag.setLogger(
    {
      error: (message) => logger.warn({ reason: message.slice(0, 200) }, 'spans were not exported'),
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
