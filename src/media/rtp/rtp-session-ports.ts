// What one call's audio needs from outside: where its packets and news go, and what it listens with.

import type { MediaEvent } from '../../calls/media.ts';
import type { CreateDetector } from '../detector-port.ts';
import type { RtpScratch } from './rtp-scratch.ts';
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
};

/** What a payload type stands for. */
export type PacketKind = 'PCMU' | 'PCMA' | 'event' | 'noise';
