// Creates the gateway's spans for intake, calls and deliveries. Without an OTLP exporter we don't
// load any OpenTelemetry code, and forward incoming trace headers unchanged.

import {
  type Attributes,
  type Context,
  createTraceState,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import type { AcceptedCall } from '../calls/call-types.ts';
import type { CallEvent } from '../calls/contract/call-event.ts';
import type { SubmitResult } from '../calls/dialout-ports.ts';
import { parseTraceparent, type TraceHeaders, writeTraceparent } from '../lib/trace-context.ts';
import { CallSpans } from './call-spans.ts';

/** An open span. */
type OpenSpan<Result> = {
  /**
   * Trace headers with this span as the parent. A server that receives them creates child spans.
   */
  readonly trace: TraceHeaders;
  end(result: Result): void;
};

export type DeliveryAttempt = {
  readonly callId: string;
  readonly eventId: string;
  readonly sequence: number;
  /** Number of the attempt, from 1. */
  readonly attempt: number;
  readonly host: string;
};
export type DeliveryResult = { readonly status: number } | { readonly error: string };

export type Tracing = {
  startIntake(parent: TraceHeaders | undefined): OpenSpan<SubmitResult>;
  /** Call this after storing an event for one of this process's calls. */
  onEvent(call: AcceptedCall, event: CallEvent): void;
  startDelivery(
    parent: TraceHeaders | undefined,
    attempt: DeliveryAttempt,
  ): OpenSpan<DeliveryResult>;
};

export function createTracing(tracer: Tracer): Tracing {
  const calls = new CallSpans(tracer, contextOf);
  return {
    startIntake: (parent) => startIntake(tracer, parent),
    onEvent: (call, event) => calls.onEvent(call, event),
    startDelivery: (parent, attempt) => startDelivery(tracer, parent, attempt),
  };
}

/** Returns a context in which the span from the incoming trace headers is the parent. */
export function contextOf(headers: TraceHeaders | undefined): Context {
  const parent = parseTraceparent(headers?.traceparent);
  if (parent === undefined) return ROOT_CONTEXT;
  const { traceId, spanId, isSampled } = parent;
  const traceFlags = isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE;
  const tracestate = headers?.tracestate;
  const state = tracestate === undefined ? {} : { traceState: createTraceState(tracestate) };
  const context = { traceId, spanId, traceFlags, isRemote: true, ...state };
  return trace.setSpanContext(ROOT_CONTEXT, context);
}

/**
 * Returns the trace headers for the next server. We forward `tracestate` unchanged, as W3C Trace
 * Context (section 3.4) requires for programs that don't add any state.
 */
function headersOf(span: Span, parent: TraceHeaders | undefined): TraceHeaders {
  const { traceId, spanId, traceFlags } = span.spanContext();
  const isSampled = (traceFlags & TraceFlags.SAMPLED) !== 0;
  return { ...parent, traceparent: writeTraceparent({ traceId, spanId, isSampled }) };
}

function startIntake(tracer: Tracer, parent: TraceHeaders | undefined): OpenSpan<SubmitResult> {
  const span = tracer.startSpan('intake', { kind: SpanKind.SERVER }, contextOf(parent));
  return {
    trace: headersOf(span, parent),
    end: (result) => {
      span.setAttribute('offhook.intake.result', result.kind);
      if ('answer' in result) span.setAttribute('offhook.call.id', result.answer.callId);
      else fail(span, result.kind);
      span.end();
    },
  };
}

function startDelivery(
  tracer: Tracer,
  parent: TraceHeaders | undefined,
  { callId, eventId, sequence, attempt, host }: DeliveryAttempt,
): OpenSpan<DeliveryResult> {
  const attributes: Attributes = {
    'offhook.call.id': callId,
    'offhook.event.id': eventId,
    'offhook.notification.sequence': sequence,
    'http.request.method': 'POST',
    'http.request.resend_count': attempt - 1,
    // Only the URL's host, because the path and query may contain secrets.
    'server.address': host,
  };
  const options = { kind: SpanKind.CLIENT, attributes };
  const span = tracer.startSpan('delivery', options, contextOf(parent));
  return {
    trace: headersOf(span, parent),
    end: (result) => {
      if ('error' in result) fail(span, result.error);
      else {
        span.setAttribute('http.response.status_code', result.status);
        if (result.status < 200 || result.status >= 300) fail(span, String(result.status));
      }
      span.end();
    },
  };
}

function fail(span: Span, reason: string): void {
  span.setAttribute('error.type', reason);
  span.setStatus({ code: SpanStatusCode.ERROR });
}
