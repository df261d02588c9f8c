// One process's Prometheus metrics. Other modules don't get the registry, only the functions that
// they need.

import { setTimeout as pause } from 'node:timers/promises';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { ServerFacts } from '../servers/server-facts.ts';
import { callMetrics, type End, type EndedCall } from './call-metrics.ts';
import { type MediaMetric, mediaMetrics } from './media-metrics.ts';
import { type RecordingMetric, recordingMetrics } from './recording-metrics.ts';
import { serverMetrics } from './server-metrics.ts';

const notificationResults = ['delivered', 'retry', 'failed'] as const;
export type NotificationResult = (typeof notificationResults)[number];

export type GatewayMetric = {
  readonly trunk: string;
  readonly gateway: string;
  readonly isUp: boolean;
};

export type Metrics = {
  readonly contentType: string;
  /** Returns the response body of `/metrics`. */
  render(): Promise<string>;
  httpRequest(method: string, route: string, status: number, seconds: number): void;
  callAccepted(): void;
  callEnded(end: End, call?: EndedCall): void;
  notificationAttempt(result: NotificationResult, seconds: number): void;
  /** Sets the number of endpoints with an open alert, by app. */
  endpointsFailing(byApp: ReadonlyMap<string, number>): void;
  /** Sets the number of campaigns whose calls wait because too many were abandoned. */
  campaignsHeld(count: number): void;
};

/** Sampling interval for the event loop delay. Keep in mind that each sample wakes the process. */
const loopDelayEveryMs = 10;

/** The functions that each scrape calls. Without one of them, its metrics don't exist. */
export type MetricSources = {
  readonly activeCalls?: () => number;
  readonly gateways?: () => readonly GatewayMetric[];
  readonly media?: () => Promise<MediaMetric>;
  readonly servers?: () => ServerFacts;
  readonly recordings?: () => RecordingMetric;
};

export function createMetrics({
  activeCalls = () => 0,
  gateways = () => [],
  media,
  servers,
  recordings,
}: MetricSources = {}): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const http = new Histogram({
    name: 'offhook_http_request_duration_seconds',
    help: 'HTTP requests by route and status',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers,
  });
  const accepted = new Counter({
    name: 'offhook_calls_accepted_total',
    help: 'Dial-out requests that were accepted',
    registers,
  });
  const calls = callMetrics(registry);
  new Gauge({
    name: 'offhook_calls_active',
    help: 'Calls that this process is handling',
    registers,
    collect() {
      this.set(activeCalls());
    },
  });
  new Gauge({
    name: 'offhook_gateway_up',
    help: 'Gateways of the trunks: 1 if calls try the gateway first, 0 if they try it last',
    labelNames: ['trunk', 'gateway'],
    registers,
    collect() {
      // A reload may have removed gateways.
      this.reset();
      for (const { trunk, gateway, isUp } of gateways()) this.set({ trunk, gateway }, isUp ? 1 : 0);
    },
  });
  const attempts = notificationMetrics(registry);
  const { failing, campaigns } = clusterMetrics(registers);
  const measureMedia = media === undefined ? undefined : mediaMetrics(registry, media);
  const measureServers =
    servers === undefined ? undefined : serverMetrics(registry, servers, () => new Date());
  const measureRecordings =
    recordings === undefined ? undefined : recordingMetrics(registry, recordings);
  const measureProcess = processMetrics(registry);
  return {
    contentType: registry.contentType,
    async render() {
      await measureProcess();
      await measureMedia?.();
      measureServers?.();
      measureRecordings?.();
      calls.knowTrunks(gateways().map(({ trunk }) => trunk));
      return await registry.metrics();
    },
    httpRequest: (method, route, status, seconds) =>
      http.observe({ method, route, status: String(status) }, seconds),
    callAccepted: () => accepted.inc(),
    callEnded: (end, call = {}) => calls.ended(end, call),
    notificationAttempt: (result, seconds) => attempts.observe({ result }, seconds),
    campaignsHeld: (count) => campaigns.set(count),
    endpointsFailing: (byApp) => {
      failing.reset();
      for (const [app_id, count] of byApp) failing.set({ app_id }, count);
    },
  };
}

/** Gauges that have the same value on every node. */
function clusterMetrics(registers: Registry[]) {
  const failing = new Gauge({
    name: 'offhook_endpoint_failing',
    help: 'Receivers of notifications that keep failing, by app; the same on every node',
    labelNames: ['app_id'],
    registers,
  });
  const campaigns = new Gauge({
    name: 'offhook_campaigns_held',
    help: 'Campaigns whose calls wait because too many were abandoned; the same on every node',
    registers,
  });
  return { failing, campaigns };
}

// As in `call-metrics.ts`, the counts are 0 at the first scrape, so that the first dead letter
// raises an alert.

function notificationMetrics(registry: Registry): Histogram<'result'> {
  const attempts = new Histogram({
    name: 'offhook_notification_attempt_duration_seconds',
    help: 'Attempts to deliver a notification, by result',
    labelNames: ['result'],
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  });
  for (const result of notificationResults) attempts.zero({ result });
  return attempts;
}

/**
 * Metrics about the process itself. Sampling starts with the first scrape, so a process that is
 * never scraped isn't woken up.
 */
function processMetrics(registry: Registry): () => Promise<void> {
  let measuring: Promise<void> | undefined;
  const start = async (): Promise<void> => {
    collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: loopDelayEveryMs });
    // Without at least one sample, the delays would be NaN. A sample needs two turns of the event
    // loop, so if the machine is busy, a single long pause may not yield one.
    for (let turn = 0; turn < 3; turn += 1) await pause(loopDelayEveryMs);
  };
  return () => (measuring ??= start());
}
