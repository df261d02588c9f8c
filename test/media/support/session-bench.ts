// An RTP session on a clock that the test controls, the packets that it sends, and a far end that
// the test controls.

import type { AmdEvent } from '../../../src/calls/detection/amd-event.ts';
import type { KeysSent } from '../../../src/calls/keys/keys.ts';
import type { MediaEvent } from '../../../src/calls/media.ts';
import type { PlanReport } from '../../../src/calls/plans/plans.ts';
import type { PlaybackReport } from '../../../src/calls/playback/playback.ts';
import type { RecordingReport } from '../../../src/calls/recording/recording.ts';
import type { CreateDetector } from '../../../src/media/detector-port.ts';
import { encodeMulaw } from '../../../src/media/g711.ts';
import type { CreateRecorder } from '../../../src/media/recorder-port.ts';
import { createRtpHeader, readRtp, writeRtpHeader } from '../../../src/media/rtp/rtp-packet.ts';
import { RtpSession } from '../../../src/media/rtp/rtp-session.ts';
import { createRtpCounts, createRtpScratch } from '../../../src/media/rtp/rtp-session-ports.ts';
import type { RemoteMedia } from '../../../src/media/sdp.ts';

export const remote: RemoteMedia = {
  address: '192.0.2.1',
  port: 4_000,
  rtcp: { address: '192.0.2.1', port: 4_001 },
  addressWithheld: false,
  weSend: true,
  theySend: true,
  codec: 'PCMU',
  payloadType: 0,
  receive: { PCMU: [0], PCMA: [8] },
  telephoneEvents: [101],
  keyPayloadType: 101,
};
export const inactivityFrames = 50;

export class SessionBench {
  readonly sent: {
    payloadType: number;
    marker: boolean;
    sequence: number;
    timestamp: number;
    ssrc: number;
    to: string;
    payload: number[];
  }[] = [];
  /** `connect <address>:<port>` and `disconnect`, in order. */
  readonly connections: string[] = [];
  readonly reports: { readonly packet: Uint8Array; readonly to: string }[] = [];
  /** The clock, in milliseconds since 1970. */
  nowMs = 1_780_000_000_000;
  readonly amd: AmdEvent[] = [];
  readonly dtmf: string[] = [];
  readonly playbacks: PlaybackReport[] = [];
  readonly keysSent: KeysSent[] = [];
  readonly plans: PlanReport[] = [];
  readonly detectorErrors: unknown[] = [];
  inactive = 0;
  /** The frames that the detector got: the level of each in thousands, `-` if lost. */
  readonly frames: string[] = [];
  readonly counts = createRtpCounts();
  readonly session: RtpSession;
  sequence = 500;
  timestamp = 8_000;
  ssrc = 7;

  /** What the recording reported, apart from the errors in `recorderErrors`. */
  readonly recordings: RecordingReport[] = [];
  readonly recorderErrors: unknown[] = [];

  constructor(createDetector?: CreateDetector, silenceFrames = 1, createRecorder?: CreateRecorder) {
    this.session = new RtpSession(
      {
        createDetector: createDetector ?? (() => this.#recordingDetector()),
        ...(createRecorder && { createRecorder }),
        inactivityFrames,
        silenceFrames,
        scratch: createRtpScratch(),
        counts: this.counts,
        ssrc: 0xcafe,
        firstSequence: 65_535,
        firstTimestamp: 2 ** 32 - 160,
        ...{ cname: 'us', now: () => this.nowMs, random: () => 0.5 },
      },
      {
        send: (packet, port, address) => {
          const header = createRtpHeader();
          readRtp(packet, header);
          const { payloadType, marker, sequence, timestamp, ssrc } = header;
          const to = `${address}:${port}`;
          this.sent.push({
            payloadType,
            marker,
            sequence,
            timestamp,
            ssrc,
            to,
            payload: [...packet.subarray(12)],
          });
        },
        sendRtcp: (packet, port, address) =>
          this.reports.push({ packet, to: `${address}:${port}` }),
        connect: (port, address) => this.connections.push(`connect ${address}:${port}`),
        disconnect: () => this.connections.push('disconnect'),
        report: (event) => this.#note(event),
        onDetectorError: (error) => this.detectorErrors.push(error),
        onRecorderError: (error) => this.recorderErrors.push(error),
      },
    );
  }

  #note(event: MediaEvent): void {
    switch (event.kind) {
      case 'amd':
        this.amd.push(event.amd);
        break;
      case 'dtmf':
        this.dtmf.push(`${event.digit}:${event.durationMs}`);
        break;
      case 'playback':
        this.playbacks.push(event.report);
        break;
      case 'keysSent':
        this.keysSent.push(event.report);
        break;
      case 'plan':
        this.plans.push(event.report);
        break;
      case 'recording':
        this.recordings.push(event.report);
        break;
      case 'inactive':
        this.inactive += 1;
        break;
      case 'botSpoke':
        break;
      case 'connected':
      case 'envelope':
      case 'failed':
      case 'quality':
      case 'stream':
        throw new Error(`a session does not report ${event.kind}`);
    }
  }

  #recordingDetector(): ReturnType<CreateDetector> {
    return {
      done: false,
      push: (frame, lost) => {
        this.frames.push(lost ? '-' : String(Math.round((frame[0] ?? 0) / 1_000)));
        return [];
      },
      stop: (reason) => [{ event: 'amd_stopped', reason, elapsedMs: this.frames.length * 20 }],
    };
  }

  receive(payload: Uint8Array, payloadType = 0, from = '192.0.2.1:4000', elapsed = 160): void {
    const [address = '', port = ''] = from.split(':');
    const packet = new Uint8Array(12 + payload.length);
    writeRtpHeader(packet, {
      payloadType,
      marker: false,
      sequence: this.sequence,
      timestamp: this.timestamp,
      ssrc: this.ssrc,
    });
    packet.set(payload, 12);
    this.sequence = (this.sequence + 1) & 0xffff;
    this.timestamp += elapsed;
    this.session.receive(packet, address, Number(port));
  }

  /** Sends 20 ms of this level, and runs the tick that follows. */
  hear(level: number, from?: string): void {
    this.receive(new Uint8Array(160).fill(encodeMulaw(level * 1_000)), 0, from);
    this.tick(1);
  }

  tick(count: number): void {
    for (let tick = 0; tick < count; tick += 1) {
      this.nowMs += 20;
      this.session.tick(true);
    }
  }
}
