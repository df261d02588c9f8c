// The metrics of RTP and of the bots' audio streams. The counts are in the media workers, which we
// ask on each scrape.

import { Counter, Gauge, type Registry } from 'prom-client';

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

/** How late packets left: how many from `n` up to `n + 1` ms, and the sum of the milliseconds. */
export type LatenessMetric = {
  readonly packetsByMs: readonly number[];
  readonly sumMs: number;
};

/** The counters of this process's media workers since the workers started. */
export type MediaMetric = {
  readonly packetsReceived: number;
  readonly packetsDiscarded: number;
  readonly packetsForged: number;
  readonly packetsLate: number;
  readonly packetsSent: number;
  readonly packetsUnsent: number;
  readonly ticksLate: number;
  readonly framesLate: number;
  readonly framesUnheard: number;
  readonly sendLateness: LatenessMetric;
  readonly streams: StreamMetric;
};

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
  packetsForged: [
    'offhook_rtp_packets_forged_total',
    'Discarded packets of encrypted calls whose authentication tag was wrong',
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
  framesUnheard: [
    'offhook_media_frames_unheard_total',
    '20 ms frames that detection or a bot never heard because a media worker was late',
  ],
} as const;

export function mediaMetrics(
  registry: Registry,
  read: () => Promise<MediaMetric>,
): () => Promise<void> {
  const setRtp = counters(registry, rtpCounters);
  const setLateness = latenessMetric(registry);
  const setStreams = streamMetrics(registry);
  return async () => {
    const now = await read();
    setRtp(now);
    setLateness(now.sendLateness);
    setStreams(now.streams);
  };
}

/**
 * Upper bounds of the histogram's buckets. Above 30 ms, a far end's jitter buffer of 40 ms may have
 * nothing left to play. Above 60 ms, a tick sends nothing.
 */
const latenessBoundsMs = [2, 5, 10, 15, 20, 30, 40, 60] as const;

/**
 * Writes the histogram as three counters, because the workers have counted already, whereas a
 * `Histogram` counts one packet at a time. Prometheus knows a histogram by the names of its parts.
 */
function latenessMetric(registry: Registry): (now: LatenessMetric) => void {
  const name = 'offhook_rtp_send_lateness_seconds';
  const help = 'How long after their 20 ms tick was due RTP packets were sent';
  const registers = [registry];
  const bucket = new Counter({ name: `${name}_bucket`, help, labelNames: ['le'], registers });
  const sum = new Counter({ name: `${name}_sum`, help, registers });
  const count = new Counter({ name: `${name}_count`, help, registers });
  return ({ packetsByMs, sumMs }) => {
    const below = (boundMs: number): number =>
      packetsByMs.slice(0, boundMs).reduce((total, packets) => total + packets, 0);
    for (const each of [bucket, sum, count]) each.reset();
    for (const boundMs of latenessBoundsMs) bucket.inc({ le: boundMs / 1_000 }, below(boundMs));
    const packets = below(packetsByMs.length);
    bucket.inc({ le: '+Inf' }, packets);
    sum.inc(sumMs / 1_000);
    count.inc(packets);
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
