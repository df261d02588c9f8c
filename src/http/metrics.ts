// One process's Prometheus metrics. Other modules don't get the registry, only the functions that
// they need.

import { setTimeout as pause } from 'node:timers/promises';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { type CallEnd, endsOfAllKinds, faultOf } from '../calls/life/call-outcome.ts';

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
  callEnded(end: End): void;
  notificationAttempt(result: NotificationResult, seconds: number): void;
  /** Sets the number of endpoints with an open alert, by app. */
  endpointsFailing(byApp: ReadonlyMap<string, number>): void;
};

/** Sampling interval for the event loop delay. Keep in mind that each sample wakes the process. */
const loopDelayEveryMs = 10;

/**
 * Counters for the bots' audio streams since this process started, as well as the current levels.
 */
export type StreamMetric = {
  readonly open: number;
  readonly framesSent: number;
  readonly framesDropped: number;
  readonly bytesReceived: number;
  readonly bytesPlayed: number;
  readonly bytesDropped: number;
  readonly underruns: number;
  readonly reconnects: number;
  readonly messagesIgnored: number;
  readonly heldBytes: number;
};

/** The counters of this process's media workers since the workers started. */
export type MediaMetric = {
  readonly packetsReceived: number;
  readonly packetsDiscarded: number;
  readonly packetsLate: number;
  readonly packetsSent: number;
  readonly packetsUnsent: number;
  readonly ticksLate: number;
  readonly framesLate: number;
  readonly streams: StreamMetric;
};

/** Calls the three functions on each scrape. */
export function createMetrics(
  activeCalls: () => number = () => 0,
  gateways: () => readonly GatewayMetric[] = () => [],
  media?: () => Promise<MediaMetric>,
): Metrics {
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
  const ended = endMetrics(registry);
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
  const failing = new Gauge({
    name: 'offhook_endpoint_failing',
    help: 'Receivers of notifications that keep failing, by app; the same on every node',
    labelNames: ['app_id'],
    registers,
  });
  const measureMedia = media === undefined ? undefined : mediaMetrics(registry, media);
  const measureProcess = processMetrics(registry);
  return {
    contentType: registry.contentType,
    async render() {
      await measureProcess();
      await measureMedia?.();
      return await registry.metrics();
    },
    httpRequest: (method, route, status, seconds) =>
      http.observe({ method, route, status: String(status) }, seconds),
    callAccepted: () => accepted.inc(),
    callEnded: (end) => ended.inc(endLabels(end)),
    notificationAttempt: (result, seconds) => attempts.observe({ result }, seconds),
    endpointsFailing: (byApp) => {
      failing.reset();
      for (const [app_id, count] of byApp) failing.set({ app_id }, count);
    },
  };
}

type End = Pick<CallEnd, 'outcome' | 'sipStatus'>;

// Make sure that every counter is 0 at the first scrape. If a counter first appeared with the value
// 1, Prometheus wouldn't see it rise, and the first dead letter wouldn't raise an alert.

function endMetrics(registry: Registry): Counter<'outcome' | 'fault'> {
  const ended = new Counter({
    name: 'offhook_calls_ended_total',
    help: 'Calls that ended, by outcome and by the party at fault',
    labelNames: ['outcome', 'fault'],
    registers: [registry],
  });
  for (const end of endsOfAllKinds()) ended.inc(endLabels(end), 0);
  return ended;
}

function endLabels(end: End): { readonly outcome: string; readonly fault: string } {
  return { outcome: end.outcome, fault: faultOf(end) ?? 'none' };
}

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

const streamCounters = {
  framesSent: ['offhook_stream_frames_sent_total', '20 ms frames sent to bots'],
  framesDropped: [
    'offhook_stream_frames_dropped_total',
    '20 ms frames dropped because a bot did not read them in time',
  ],
  bytesReceived: [
    'offhook_stream_audio_received_bytes_total',
    'Bytes of audio that bots sent, 8000 per second of audio',
  ],
  bytesPlayed: ['offhook_stream_audio_played_bytes_total', 'Bytes of bot audio sent as RTP'],
  bytesDropped: [
    'offhook_stream_audio_dropped_bytes_total',
    'Bytes of bot audio dropped because the buffer was full',
  ],
  underruns: ['offhook_stream_underruns_total', 'Gaps of under 200 ms in bot audio'],
  reconnects: ['offhook_stream_reconnects_total', 'Reconnections to bots'],
  messagesIgnored: [
    'offhook_stream_messages_ignored_total',
    'Invalid messages from bots that were ignored',
  ],
} as const;

const rtpCounters = {
  packetsReceived: ['offhook_rtp_packets_received_total', 'RTP packets from far ends'],
  packetsDiscarded: [
    'offhook_rtp_packets_discarded_total',
    'Packets that were not RTP or RTCP, had a different payload type from the agreed one, or came from another source',
  ],
  packetsLate: ['offhook_rtp_packets_late_total', 'RTP packets that arrived too late to be used'],
  packetsSent: ['offhook_rtp_packets_sent_total', 'RTP packets to far ends'],
  packetsUnsent: [
    'offhook_rtp_packets_unsent_total',
    'RTP packets that were not sent because their tick was late',
  ],
  ticksLate: [
    'offhook_media_ticks_late_total',
    '20 ms ticks that a media worker ran over 60 ms late',
  ],
  framesLate: [
    'offhook_media_frames_late_total',
    '20 ms frames that detection or a bot received over 60 ms late, or never',
  ],
} as const;

function mediaMetrics(registry: Registry, read: () => Promise<MediaMetric>): () => Promise<void> {
  const setRtp = counters(registry, rtpCounters);
  const setStreams = streamMetrics(registry);
  // The counts are in the media workers, so we ask them on each scrape.
  return async () => {
    const now = await read();
    setRtp(now);
    setStreams(now.streams);
  };
}

function streamMetrics(registry: Registry): (now: StreamMetric) => void {
  const registers = [registry];
  const open = new Gauge({
    name: 'offhook_streams_open',
    help: 'Audio streams that bots have open',
    registers,
  });
  const held = new Gauge({
    name: 'offhook_stream_buffer_bytes',
    help: 'Memory used by queued bot audio; STREAM_BUFFER_MB limits it',
    registers,
  });
  const setCounters = counters(registry, streamCounters);
  return (now) => {
    open.set(now.open);
    held.set(now.heldBytes);
    setCounters(now);
  };
}

function counters<Member extends string>(
  registry: Registry,
  named: Readonly<Record<Member, readonly [name: string, help: string]>>,
): (now: Readonly<Record<Member, number>>) => void {
  const registers = [registry];
  const all = Object.entries<readonly [string, string]>(named).map(
    ([member, [name, help]]) => [member as Member, new Counter({ name, help, registers })] as const,
  );
  return (now) => {
    for (const [member, counter] of all) {
      // If a worker dies, its counts are lost. That's fine, because Prometheus can handle a counter
      // reset.
      counter.reset();
      counter.inc(now[member]);
    }
  };
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
