// The dependencies of an RTP session: a sink for its packets and events, a detector, and the state
// that all of a worker's sessions share.

import type { MediaEvent } from '../../calls/media.ts';
import type { CreateDetector } from '../detector-port.ts';
import { silenceByte } from '../g711.ts';
import type { CreateRecorder } from '../recorder-port.ts';
import { createJitterStatistics, frameSamples, type JitterStatistics } from './jitter-buffer.ts';
import { createRtpHeader, type RtpHeader } from './rtp-packet.ts';
import type { RtpSenderOptions } from './rtp-sender.ts';

export type RtpSessionSink = {
  send(packet: Uint8Array, port: number, address: string): void;
  /** Sends a report. `isMultiplexed`: from the port from which `send` sends. */
  sendRtcp(packet: Uint8Array, port: number, address: string, isMultiplexed: boolean): void;
  /**
   * Fixes the far end's address until `disconnect`. All packets are sent to this address, and the
   * sink may drop packets from any other address.
   */
  connect(port: number, address: string): void;
  disconnect(): void;
  report(event: MediaEvent): void;
  onDetectorError(error: unknown): void;
  /** Reports a bug in the recorder. The recording has failed. */
  onRecorderError(error: unknown): void;
};

export type RtpSessionOptions = RtpSenderOptions & {
  readonly createDetector: CreateDetector;
  /** Undefined if calls can't be recorded. */
  readonly createRecorder?: CreateRecorder;
  readonly inactivityFrames: number;
  /** Names our side in RTCP, without saying who we are (RFC 7022). */
  readonly cname: string;
  /** Milliseconds since 1970. Default: the process's clock. */
  readonly now?: () => number;
  /**
   * Since when what we receive now may have arrived, on the same clock. Default: it has just
   * arrived.
   */
  readonly sleptSince?: () => number | undefined;
  /** Spreads the reports. From 0 up to, but not including, 1. Default: `Math.random`. */
  readonly random?: () => number;
  /** Ticks between two silence packets. See `SilencePacing`. */
  readonly silenceFrames: number;
  readonly scratch: RtpScratch;
  readonly counts: RtpCounts;
};

/** The kind of packet that a payload type identifies. */
export type PacketKind = 'PCMU' | 'PCMA' | 'event' | 'noise';

/** Counters shared by all sessions in a worker. */
export type RtpCounts = {
  received: number;
  discarded: number;
  /** Discarded packets of encrypted calls whose tag was wrong. */
  forged: number;
  sent: number;
  /** Packets that we couldn't send because the clock was late. */
  unsent: number;
  /** Frames that detection or a bot heard over 60 ms late, or not at all. */
  framesLate: number;
  /**
   * Frames that detection or a bot never heard because the clock was late. Fractional, because the
   * jitter buffer skips samples.
   */
  framesUnheard: number;
  readonly jitter: JitterStatistics;
};

export function createRtpCounts(): RtpCounts {
  return {
    received: 0,
    discarded: 0,
    forged: 0,
    sent: 0,
    unsent: 0,
    framesLate: 0,
    framesUnheard: 0,
    jitter: createJitterStatistics(),
  };
}

/**
 * Memory that all of a thread's sessions share, so that we needn't allocate any for each packet or
 * frame.
 */
export type RtpScratch = {
  readonly header: RtpHeader;
  readonly heard: Int16Array;
  readonly arrived: Int16Array;
  readonly mulaw: Uint8Array;
  readonly silence: Uint8Array;
};

export function createRtpScratch(): RtpScratch {
  return {
    header: createRtpHeader(),
    heard: new Int16Array(frameSamples),
    arrived: new Int16Array(frameSamples),
    mulaw: new Uint8Array(frameSamples),
    silence: new Uint8Array(frameSamples).fill(silenceByte.PCMU),
  };
}
