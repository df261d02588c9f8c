// Opens tracing if OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set.
// Otherwise we don't even load OpenTelemetry.

import type { Intake } from '../calls/dialout-ports.ts';
import type { Config } from '../config.ts';
import type { Closers } from '../lib/closers.ts';
import type { Logger } from '../lib/logger.ts';
import { traceHeadersOf } from '../lib/trace-context.ts';
import type { Tracing } from '../tracing/tracing.ts';
import { version } from '../version.ts';

export async function openTracing(
  { tracing: { url, serviceName }, nodeId }: Pick<Config, 'tracing' | 'nodeId'>,
  { logger, closers }: { readonly logger: Logger; readonly closers: Closers },
): Promise<Tracing | undefined> {
  if (url === undefined) return undefined;
  const [{ openOtlp }, { createTracing }] = await Promise.all([
    import('../tracing/otlp.ts'),
    import('../tracing/tracing.ts'),
  ]);
  const otlp = openOtlp({ url, serviceName, version, nodeId, logger });
  // Tracing opens first and closes last, because other parts may end spans while they close.
  closers.add('traces', () => otlp.close());
  return createTracing(otlp.tracer);
}

/**
 * Wraps the intake so that each request gets a span. We store the span's headers with the call, so
 * that this span becomes the parent of all the call's later spans.
 */
export function tracedIntake(intake: Intake, tracing: Tracing | undefined): Intake {
  if (tracing === undefined) return intake;
  return {
    submit: async (submission) => {
      const span = tracing.startIntake(traceHeadersOf(submission.request));
      const request = { ...submission.request, ...span.trace };
      const result = await intake.submit({ ...submission, request });
      span.end(result);
      return result;
    },
  };
}
