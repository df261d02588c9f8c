// The trace of one call over two nodes, from its POST to the last attempt to notify its receiver:
// one node accepts the request, the other node dials. A test server collects the spans as OTLP over
// HTTP, like a real collector.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { connect } from '@nats-io/transport-node';
import { expect, onTestFinished, test } from 'vitest';
import { parseTraceparent } from '../../src/lib/trace-context.ts';
import { startCluster } from '../support/cluster.ts';
import { openTestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { numberFor } from '../support/far-end.ts';
import { readEvent } from '../support/published-events.ts';

type Attribute = { readonly key: string; readonly value: Readonly<Record<string, unknown>> };
type OtlpSpan = {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly Attribute[];
};
type OtlpBody = {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
  }[];
};
type Collected = OtlpSpan & { readonly node: unknown };

const attributeOf = (attributes: readonly Attribute[], key: string): unknown =>
  Object.values(attributes.find((attribute) => attribute.key === key)?.value ?? {})[0];

async function startCollector() {
  const spans: Collected[] = [];
  const server = createServer((request, response) => {
    json(request).then(
      (body) => {
        for (const { resource, scopeSpans } of (body as OtlpBody).resourceSpans) {
          const node = attributeOf(resource.attributes, 'service.instance.id');
          for (const span of scopeSpans.flatMap((scope) => scope.spans))
            spans.push({ ...span, node });
        }
        response.setHeader('content-type', 'application/json').end('{}');
      },
      // The node died during a request.
      () => response.destroy(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans };
}

const tracestate = 'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE';
const incoming = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const { traceId, spanId: outerSpanId } = parseTraceparent(incoming) ?? { traceId: '', spanId: '' };

test('a trace goes from the POST to the last attempt, over two nodes', async () => {
  const collector = await startCollector();
  const database = await openTestDatabase('postgres');
  onTestFinished(() => database.remove());
  const cluster = await startCluster({
    databaseUrl: database.location.databaseUrl ?? '',
    variables: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
  });
  onTestFinished(() => cluster[Symbol.asyncDispose]());
  const one = await cluster.startNode('one', { MAX_CONCURRENT_CALLS: '1' });
  const { receiver } = cluster;
  // This call takes the only place of the first node.
  const staying = await one.dialer.dial({ target: `tel:+${numberFor('stay', 0, 1)}` });
  const isUp = async () =>
    ((await one.dialer.call(staying.callId)).body as { state: string }).state === 'answered';
  await eventually(isUp, 'the first call is up');
  await cluster.startNode('two');
  const url = new URL(cluster.nats.url);
  const nats = await connect({ servers: url.host, user: url.username, pass: url.password });
  onTestFinished(() => nats.close());
  const headersOfEvents: string[] = [];
  let refusals = 1;
  receiver.answerWith(({ status }) => (status === 'Answered' && refusals-- > 0 ? 500 : 200));

  nats.subscribe('offhook.call.>', {
    callback: (_error, message) => {
      const { callId } = readEvent(message);
      const of = (name: string) => message.headers?.get(name);
      if (callId !== staying.callId)
        headersOfEvents.push(`${of('traceparent')} ${of('tracestate')}`);
    },
  });
  await nats.flush();
  const { callId } = await one.dialer.dial(
    {
      target: `tel:+${numberFor('late', 3, 2)}`,
      notifyurl: receiver.url,
      machineDetection: 'detect',
    },
    { traceparent: incoming, tracestate },
  );
  await receiver.untilEnded(callId);
  const attempts = receiver.received.filter(({ body }) => body.callId === callId);
  const trace = () => collector.spans.filter((span) => span.traceId === traceId);
  const named = (name: string) => trace().filter((span) => span.name === name);
  // Each node sends its spans when it has enough of them, or after a while.
  const all = { detection: 1, dialing: 1, end: 1, intake: 1, leg: 1, queue: 1, ringing: 1 };
  const wanted = attempts.length + Object.keys(all).length;
  await eventually(() => trace().length >= wanted, 'the trace is complete');

  const counts = Object.fromEntries(
    [...new Set(trace().map(({ name }) => name))].sort().map((name) => [name, named(name).length]),
  );
  expect(counts).toEqual({ ...all, delivery: attempts.length });
  // One of the attempts was refused.
  expect(attempts.map(({ status }) => status)).toContain(500);
  expect(named('intake')).toMatchObject([{ node: 'one', parentSpanId: outerSpanId }]);
  // Any node may retry a refused notification.
  for (const { name, node } of trace()) {
    if (name !== 'intake' && name !== 'delivery') expect(node, name).toBe('two');
  }

  const [intake, leg] = [named('intake')[0], named('leg')[0]];
  for (const { name, parentSpanId } of trace()) {
    const isUnderLeg = ['detection', 'dialing', 'ringing'].includes(name);
    if (name !== 'intake') expect(parentSpanId, name).toBe((isUnderLeg ? leg : intake)?.spanId);
  }
  for (const { startTimeUnixNano, endTimeUnixNano } of trace()) {
    expect(BigInt(endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(startTimeUnixNano));
  }
  // Each attempt names its own span, and each event names the span of the request.
  const sent = attempts.map(({ headers }) => parseTraceparent(headers['traceparent'])?.spanId);
  expect(new Set(sent)).toEqual(new Set(named('delivery').map(({ spanId }) => spanId)));
  const eventHeaders = `00-${traceId}-${intake?.spanId}-01 ${tracestate}`;
  expect(new Set(headersOfEvents)).toEqual(new Set([eventHeaders]));
  // Both contain the tracestate of earlier systems, and so does each span.
  const states = [
    ...attempts.map(({ headers }) => headers['tracestate']),
    ...trace().map(({ traceState }) => traceState),
  ];
  expect(new Set(states)).toEqual(new Set([tracestate]));
  // Spans contain no phone number and no path of a receiver.
  expect(JSON.stringify(trace())).not.toMatch(/15559876543|\/notify/);
});
