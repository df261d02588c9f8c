// What one call's audio needs from outside: where its packets and news go, and what it listens with.

import type { KeysSent } from '../../calls/keys/keys.ts';
import type { PlanReport } from '../../calls/plans/plans.ts';
import type { PlaybackReport } from '../../calls/playback/playback.ts';
import type { DetectionSink } from '../detection.ts';
import type { CreateDetector, OpenLineListener } from '../detector-port.ts';
import type { RtpScratch } from './rtp-scratch.ts';
import type { RtpSenderOptions } from './rtp-sender.ts';

export type RtpSessionSink = DetectionSink & {
  send(packet: Uint8Array, port: number, address: string): void;
  /** Until `disconnect`, packets from elsewhere need not come through, and all that is sent goes there. */
  connect(port: number, address: string): void;
  disconnect(): void;
  onDtmf(digit: string, durationMs: number): void;
  onPlayback(report: PlaybackReport): void;
  onKeysSent(report: KeysSent): void;
  onPlan(report: PlanReport): void;
  onInactive(): void;
};

export type RtpSessionOptions = RtpSenderOptions & {
  readonly createDetector: CreateDetector;
  readonly openLineListener: OpenLineListener;
  readonly inactivityFrames: number;
  /** See SilencePacing. */
  readonly silenceFrames: number;
  readonly scratch: RtpScratch;
};

/** What a payload type stands for. */
export type PacketKind = 'PCMU' | 'PCMA' | 'event' | 'noise';
