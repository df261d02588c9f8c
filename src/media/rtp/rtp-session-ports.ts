// What one call's audio needs from outside: where its packets and news go, what it listens with, and what it shares with the other
// calls of its worker.

import type { MediaEvent } from '../../calls/media.ts';
import type { CreateDetector } from '../detector-port.ts';
import { silenceByte } from '../g711.ts';
import { createJitterStatistics, frameSamples, type JitterStatistics } from './jitter-buffer.ts';
import { createRtpHeader, type RtpHeader } from './rtp-packet.ts';
import type { RtpSenderOptions } from './rtp-sender.ts';

export type RtpSessionSink = {
  send(packet: Uint8Array, port: number, address: string): void;
  /** Until `disconnect`, packets from elsewhere need not come through, and all that is sent goes there. */
  connect(port: number, address: string): void;
  disconnect(): void;
  tell(event: MediaEvent): void;
  onDetectorError(error: unknown): void;
};

export type RtpSessionOptions = RtpSenderOptions & {
  readonly createDetector: CreateDetector;
  readonly inactivityFrames: number;
  /** See SilencePacing. */
  readonly silenceFrames: number;
  readonly scratch: RtpScratch;
  readonly counts: RtpCounts;
};

/** What a payload type stands for. */
export type PacketKind = 'PCMU' | 'PCMA' | 'event' | 'noise';

/** What a worker's sessions have counted together. */
export type RtpCounts = {
  received: number;
  discarded: number;
  sent: number;
  /** What a late clock left out. */
  unsent: number;
  /** Frames of late ticks (over 60 ms), in calls that detection or a bot hears: heard late, or never. */
  framesLate: number;
  readonly jitter: JitterStatistics;
};

export function createRtpCounts(): RtpCounts {
  return {
    received: 0,
    discarded: 0,
    sent: 0,
    unsent: 0,
    framesLate: 0,
    jitter: createJitterStatistics(),
  };
}

/** Serves every session of a thread in turn, so that no packet and no frame costs an allocation. */
export type RtpScratch = {
  readonly header: RtpHeader;
  readonly frame: Int16Array;
  readonly mulaw: Uint8Array;
  readonly silence: Uint8Array;
};

export function createRtpScratch(): RtpScratch {
  return {
    header: createRtpHeader(),
    frame: new Int16Array(frameSamples),
    mulaw: new Uint8Array(frameSamples),
    silence: new Uint8Array(frameSamples).fill(silenceByte.PCMU),
  };
}
