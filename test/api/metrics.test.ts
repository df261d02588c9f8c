import { describe, expect, test } from 'vitest';
import { callOutcomes } from '../../src/calls/contract/call-words.ts';
import { createMetrics } from '../../src/http/metrics.ts';

describe('the metrics of ended calls', () => {
  test('name the party at fault, or `none`', async () => {
    const metrics = createMetrics();
    metrics.callEnded({ outcome: 'completed' });
    metrics.callEnded({ outcome: 'busy', sipStatus: 486 });
    metrics.callEnded({ outcome: 'rejected', sipStatus: 403 });
    metrics.callEnded({ outcome: 'rejected', sipStatus: 407 });
    metrics.callEnded({ outcome: 'rejected', sipStatus: 407 });

    const lines = (await metrics.render()).split('\n');
    const ended = lines.filter((line) => line.startsWith('offhook_calls_ended_total{'));
    expect(ended.filter((line) => !line.endsWith(' 0'))).toEqual([
      'offhook_calls_ended_total{outcome="completed",fault="none"} 1',
      'offhook_calls_ended_total{outcome="busy",fault="callee"} 1',
      'offhook_calls_ended_total{outcome="rejected",fault="carrier"} 1',
      'offhook_calls_ended_total{outcome="rejected",fault="gateway"} 2',
    ]);
  });
});

test('counters exist with 0 from the start, because one that begins at 1 has not risen', async () => {
  const lines = (await createMetrics().render()).split('\n');

  for (const outcome of callOutcomes) {
    const ofOutcome = lines.filter((line) => line.includes(`{outcome="${outcome}",`));
    expect(ofOutcome.length, outcome).toBeGreaterThan(0);
    for (const line of ofOutcome) expect(line).toMatch(/ 0$/);
  }
  expect(lines).toContain('offhook_calls_ended_total{outcome="rejected",fault="gateway"} 0');
  expect(lines).toContain('offhook_calls_ended_total{outcome="blocked",fault="carrier"} 0');
  for (const result of ['delivered', 'retry', 'failed']) {
    expect(lines).toContain(
      `offhook_notification_attempt_duration_seconds_count{result="${result}"} 0`,
    );
  }
});

describe('the metrics of media', () => {
  test('are read from the media workers at each scrape', async () => {
    const counted = {
      ...{ open: 2, framesSent: 500, framesDropped: 3, bytesReceived: 8_000, bytesPlayed: 7_000 },
      ...{ bytesDropped: 0, underruns: 1, reconnects: 4, messagesIgnored: 5, heldBytes: 16_000 },
    };
    const rtp = {
      ...{
        packetsReceived: 900,
        packetsDiscarded: 8,
        packetsForged: 5,
        packetsLate: 7,
        packetsSent: 800,
      },
      ...{ packetsUnsent: 6, ticksLate: 3, framesLate: 12, framesUnheard: 4 },
      sendLateness: { packetsByMs: [700, 50, 0, 40, ...Array(28).fill(0), 7, 3], sumMs: 1_250 },
    };
    const metrics = createMetrics({ media: async () => ({ ...rtp, streams: counted }) });
    await metrics.render();
    counted.framesSent = 600;

    const lines = (await metrics.render()).split('\n');
    expect(lines.filter((line) => line.startsWith('offhook_stream')).sort()).toEqual([
      'offhook_stream_audio_dropped_bytes_total 0',
      'offhook_stream_audio_played_bytes_total 7000',
      'offhook_stream_audio_received_bytes_total 8000',
      'offhook_stream_buffer_bytes 16000',
      'offhook_stream_frames_dropped_total 3',
      'offhook_stream_frames_sent_total 600',
      'offhook_stream_messages_ignored_total 5',
      'offhook_stream_reconnects_total 4',
      'offhook_stream_underruns_total 1',
      'offhook_streams_open 2',
    ]);
    expect(lines.filter((line) => /^offhook_(rtp|media)/.test(line)).sort()).toEqual([
      'offhook_media_frames_late_total 12',
      'offhook_media_frames_unheard_total 4',
      'offhook_media_ticks_late_total 3',
      'offhook_rtp_packets_discarded_total 8',
      'offhook_rtp_packets_forged_total 5',
      'offhook_rtp_packets_late_total 7',
      'offhook_rtp_packets_received_total 900',
      'offhook_rtp_packets_sent_total 800',
      'offhook_rtp_packets_unsent_total 6',
      'offhook_rtp_send_lateness_seconds_bucket{le="+Inf"} 800',
      'offhook_rtp_send_lateness_seconds_bucket{le="0.002"} 750',
      'offhook_rtp_send_lateness_seconds_bucket{le="0.005"} 790',
      'offhook_rtp_send_lateness_seconds_bucket{le="0.01"} 790',
      'offhook_rtp_send_lateness_seconds_bucket{le="0.015"} 790',
      'offhook_rtp_send_lateness_seconds_bucket{le="0.02"} 790',
      'offhook_rtp_send_lateness_seconds_bucket{le="0.03"} 790',
      'offhook_rtp_send_lateness_seconds_bucket{le="0.04"} 800',
      'offhook_rtp_send_lateness_seconds_bucket{le="0.06"} 800',
      'offhook_rtp_send_lateness_seconds_count 800',
      'offhook_rtp_send_lateness_seconds_sum 1.25',
    ]);
  });
});
