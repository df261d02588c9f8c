// The spans of calls with an unusual course, and the trace headers of notifications without a
// collector.

import { SpanStatusCode } from '@opentelemetry/api';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { describe, expect, test } from 'vitest';
import type { AcceptedCall } from '../../src/calls/call-types.ts';
import type { CallEvent } from '../../src/calls/contract/call-event.ts';
import { exampleEvent, exampleIdentity } from '../../src/calls/contract/event-examples.ts';
import { parseTraceparent, type TraceHeaders } from '../../src/lib/trace-context.ts';
import { attemptDelivery, type DeliveryDeps } from '../../src/notifier/delivery.ts';
import { defaultRetrySchedule } from '../../src/notifier/delivery-rules.ts';
import { createTracing } from '../../src/tracing/tracing.ts';
import { acceptedCall } from '../support/call-records.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const traceparent = `00-${traceId}-00f067aa0ba902b7-01`;

const call = (parent?: string, tracestate?: string): AcceptedCall => ({
  ...exampleIdentity,
  acceptedAt: new Date('2026-11-20T09:00:00.000Z'),
  request: {
    ...acceptedCall().request,
    ...(parent === undefined ? {} : { traceparent: parent }),
    ...(tracestate === undefined ? {} : { tracestate }),
  },
});

/** The spans by name, with their durations. */
function spansOf(events: readonly CallEvent[], of = call(traceparent)) {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const tracing = createTracing(provider.getTracer('test'));
  for (const event of events) tracing.onEvent(of, event);
  return exporter.getFinishedSpans().map((span) => ({
    name: span.name,
    ms: span.duration[0] * 1_000 + span.duration[1] / 1e6,
    isError: span.status.code === SpanStatusCode.ERROR,
    traceId: span.spanContext().traceId,
    tracestate: span.spanContext().traceState?.serialize(),
  }));
}

const at = (event: CallEvent, seconds: number): CallEvent => ({
  ...event,
  time: new Date(Date.parse('2026-11-20T09:00:00.000Z') + seconds * 1_000).toISOString(),
});
const dialing = (attempt: number): CallEvent => {
  const event = exampleEvent('dialing');
  const failedAttempts = [{ gateway: 'one', sipStatus: 503, reason: 'x', durationMs: 1 }];
  const more = attempt === 1 ? {} : { failedAttempts };
  return { ...event, data: { ...event.data, attempt, ...more } } as CallEvent;
};

describe('the spans of a call', () => {
  test('that tries two gateways include two legs, of which the first failed', () => {
    const spans = spansOf([
      at(dialing(1), 1),
      at(dialing(2), 3),
      at(exampleEvent('ringing'), 4),
      at(exampleEvent('failed'), 9),
    ]);

    expect(spans.map(({ name, ms, isError }) => [name, ms, isError])).toEqual([
      ['queue', 1_000, false],
      ['dialing', 2_000, false],
      ['leg', 2_000, true],
      ['dialing', 1_000, false],
      ['ringing', 5_000, false],
      ['leg', 6_000, true],
      ['end', 0, false],
    ]);
    expect(new Set(spans.map((span) => span.traceId))).toEqual(new Set([traceId]));
  });

  test('that was never dialled include the wait in the queue', () => {
    const spans = spansOf([at(exampleEvent('failed'), 300)]);

    expect(spans.map(({ name, ms }) => [name, ms])).toEqual([
      ['queue', 300_000],
      ['end', 0],
    ]);
  });

  test('are not recorded if its request is not sampled', () => {
    const quiet = call(traceparent.replace(/01$/, '00'));

    expect(spansOf([at(dialing(1), 1), at(exampleEvent('failed'), 2)], quiet)).toEqual([]);
  });
});

test('the spans of a call have the tracestate of its request', () => {
  const spans = spansOf([at(exampleEvent('failed'), 1)], call(traceparent, 'congo=1,rojo=2'));

  expect(new Set(spans.map((span) => span.tracestate))).toEqual(new Set(['congo=1,rojo=2']));
});

test('a request without trace headers gets a span of its own, and no tracestate', () => {
  const tracing = createTracing(new BasicTracerProvider().getTracer('test'));
  const { trace } = tracing.startIntake(undefined);

  expect(parseTraceparent(trace.traceparent)).toBeDefined();
  expect(Object.keys(trace)).toEqual(['traceparent']);
});

describe('without a collector', () => {
  const attempt = async (notifyHeaders: Readonly<Record<string, string>>, trace?: TraceHeaders) => {
    let sent: Readonly<Record<string, string>> = {};
    const deps: DeliveryDeps = {
      sender: {
        send: async ({ headers }) => {
          sent = headers;
          return { kind: 'response', status: 200 };
        },
        close: async () => undefined,
      },
      secrets: async () => ['whsec_dGVzdA=='],
      schedule: defaultRetrySchedule,
      now: () => new Date(),
      random: () => 0,
      version: 'test',
    };
    const notification = { eventId: 'evt-1', appId: 'app-1', sequence: 1, body: '{}', attempts: 0 };
    const recipient = { appId: 'app-1', accountId: 'acme', notifyUrl: 'http://127.0.0.1/' };
    await attemptDelivery(
      deps,
      { ...notification, attemptsBefore: 0, owedSince: 0 },
      'call-1',
      { ...recipient, notifyHeaders, ...(trace === undefined ? {} : { trace }) },
      () => true,
    );
    const lower = Object.entries(sent).map(([name, value]) => [name.toLowerCase(), value] as const);
    return new Map(lower.filter(([name]) => name.startsWith('trace')));
  };

  test('a notification has the trace headers of the request', async () => {
    const trace = { traceparent, tracestate: 'congo=1' };
    expect(await attempt({}, trace)).toEqual(new Map(Object.entries(trace)));
    expect(await attempt({}, { traceparent })).toEqual(new Map([['traceparent', traceparent]]));
  });

  test('a notification has no trace headers if the request had none', async () => {
    expect(await attempt({})).toEqual(new Map());
  });

  test('a notification with a trace of its own has no trace headers of the request', async () => {
    const trace = { traceparent, tracestate: 'congo=1' };
    expect(await attempt({ Traceparent: 'its own' }, trace)).toEqual(
      new Map([['traceparent', 'its own']]),
    );
    expect(await attempt({ Tracestate: 'its=own' }, trace)).toEqual(
      new Map(Object.entries({ traceparent, tracestate: 'its=own' })),
    );
  });
});
