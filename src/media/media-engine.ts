// The media engine of one worker thread. It owns the sockets, the sessions and the playout clock,
// and handles the messages that the main thread sends.

import { randomBytes } from 'node:crypto';
import { CallNotes } from '../calls/capture/call-notes.ts';
import type { MediaCommand, MediaEvent } from '../calls/media.ts';
import type { StreamReport, StreamSettings } from '../calls/stream/stream.ts';
import { ThreadRest } from '../lib/threads/thread-rest.ts';
import { Bridges } from './bridges.ts';
import type { CreateDetector } from './detector-port.ts';
import type {
  FromMediaWorker,
  MediaStatistics,
  MediaWorkerData,
  ToMediaWorker,
} from './media-messages.ts';
import { LateFrames } from './playout/late-frames.ts';
import { PlayoutLoop, tickMs } from './playout/playout.ts';
import { PlayoutPool } from './playout/playout-pool.ts';
import { createPlayoutStatistics, PlayoutQueue } from './playout/playout-queue.ts';
import { SendLateness } from './playout/send-lateness.ts';
import type { Recorders } from './recorder-port.ts';
import { PortPool } from './rtp/port-pool.ts';
import { RtpSession } from './rtp/rtp-session.ts';
import { createRtpCounts, createRtpScratch } from './rtp/rtp-session-ports.ts';
import { RtpSockets } from './rtp/rtp-sockets.ts';
import { type CreateStream, createStreamStatistics } from './stream-port.ts';

/**
 * We try this many ports for one call, because another gateway on this host may be using a run of
 * consecutive pairs, one for each of its calls. An attempt costs about 0.1 ms, and the next call
 * continues after the last port that we tried.
 */
const maxBindAttempts = 512;

/** Code from other folders that runs in the media worker. */
export type MediaPrograms = {
  readonly createDetector: CreateDetector;
  readonly createStream: CreateStream;
  /** Undefined if calls can't be recorded. */
  readonly recorders?: Recorders;
};

type LiveSession = {
  readonly session: RtpSession;
  readonly sockets: RtpSockets;
  readonly port: number;
  readonly notes: CallNotes;
};

export class MediaEngine {
  readonly #data: MediaWorkerData;
  readonly #programs: MediaPrograms;
  readonly #post: (message: FromMediaWorker) => void;
  readonly #pool: PortPool;
  readonly #playoutPool: PlayoutPool;
  readonly #played = createPlayoutStatistics();
  readonly #streamStatistics = createStreamStatistics();
  readonly #live = new Map<number, LiveSession>();
  readonly #bridges = new Bridges(
    (id) => this.#live.get(id)?.session,
    (id) => this.#report(id, { kind: 'connected' }),
  );
  readonly #silenceFrames: number;
  readonly #counts = createRtpCounts();
  readonly #scratch = createRtpScratch();
  readonly #sendLateness = new SendLateness();
  readonly #loop: PlayoutLoop;

  constructor(
    data: MediaWorkerData,
    programs: MediaPrograms,
    post: (message: FromMediaWorker) => void,
  ) {
    this.#data = data;
    this.#silenceFrames = Math.round(data.silenceIntervalMs / tickMs);
    this.#programs = programs;
    this.#post = post;
    this.#playoutPool = new PlayoutPool(data.streams.bufferBytes);
    this.#pool = new PortPool({ ...data, drainMs: data.portDrainMs });
    const lateFrames = new LateFrames(this.#counts, (report) =>
      post({ kind: 'framesLate', report }),
    );
    this.#loop = new PlayoutLoop(
      {
        tick: (transmit, dueMs) => this.#tickAll(transmit, dueMs),
        isIdle: () => this.#live.size === 0,
        // Don't let the thread rest while it relays packets between two legs, or while a call has a
        // bot, because connecting to a bot takes several turns of the event loop.
        mayRest: () => this.#bridges.isEmpty && !this.#hasStream(),
        ran: (lateMs, hasCaughtUp) => lateFrames.check(performance.now(), lateMs, hasCaughtUp),
      },
      new ThreadRest(data.rest),
    );
  }

  handle(message: ToMediaWorker): void {
    switch (message.kind) {
      case 'open':
        this.#open(message.id).catch((error: unknown) => {
          this.#post({ kind: 'refused', id: message.id, reason: describeError(error) });
        });
        return;
      case 'remote':
        this.#live.get(message.id)?.session.applyRemote(message.remote, message.phase);
        return;
      case 'session':
        this.#execute(message.id, message.command);
        return;
      case 'bridge':
        this.#bridges.enter(message.id, message.partner, message.phase);
        return;
      case 'recordingThread':
        this.#programs.recorders?.connect(message.port);
        return;
      case 'close':
        this.#close(message.id);
        return;
      case 'statistics':
        this.#post({
          kind: 'statistics',
          request: message.request,
          statistics: this.#statistics(),
        });
    }
  }

  #execute(id: number, command: MediaCommand): void {
    const live = this.#live.get(id);
    if (live === undefined) return;
    if (command.kind === 'stream') this.#stream(live, id, command);
    else if (command.kind === 'requestEnvelope') this.#reportEnvelope(id);
    else if (command.kind === 'requestQuality')
      this.#report(id, { kind: 'quality', quality: live.session.quality() });
    else live.session.execute(command);
  }

  #report(id: number, event: MediaEvent): void {
    this.#post({ kind: 'session', id, event });
  }

  /** Opens a session and its sockets. Posts `refused` if every attempt fails. */
  async #open(id: number): Promise<void> {
    let reason = 'no free port';
    for (let attempt = 0; attempt < maxBindAttempts; attempt += 1) {
      const port = this.#pool.take(performance.now());
      if (port === undefined) break;
      const notes = new CallNotes();
      const session = this.#createSession(id, notes);
      const opened = await RtpSockets.open(this.#data.host, port, {
        onPacket: (packet, address, fromPort) =>
          this.#receive(session, id, packet, address, fromPort),
        onRtcp: (packet, address, fromPort) =>
          this.#guard(id, () => session.receiveRtcp(packet, address, fromPort)),
        onUnreachable: () => session.unreachable(),
        onError: (failure) => this.#fail(id, failure),
      });
      if (opened.kind === 'open') {
        this.#begin(id, { session, sockets: opened.sockets, port, notes });
        return;
      }
      this.#pool.release(port, performance.now());
      reason = opened.reason;
      // With any other error, e.g. too many open files or an address that's gone, the other ports
      // would fail as well.
      if (!reason.includes('EADDRINUSE')) break;
    }
    this.#post({ kind: 'refused', id, reason });
  }

  #begin(id: number, live: LiveSession): void {
    this.#live.set(id, live);
    this.#loop.start();
    this.#post({ kind: 'opened', id, port: live.port });
  }

  #createSession(id: number, notes: CallNotes): RtpSession {
    const random = randomBytes(22);
    const { recorders } = this.#programs;
    return new RtpSession(
      {
        createDetector: withNotes(this.#programs.createDetector, notes),
        ...(recorders && { createRecorder: recorders.create }),
        inactivityFrames: Math.ceil(this.#data.inactivityTimeoutMs / tickMs),
        silenceFrames: this.#silenceFrames,
        scratch: this.#scratch,
        counts: this.#counts,
        ssrc: random.readUInt32BE(0),
        // Below 2^15, so that lost first packets can't hide a wrap from the far end's rollover
        // counter (RFC 3711, section 3.3.1).
        firstSequence: random.readUInt16BE(4) >>> 1,
        firstTimestamp: random.readUInt32BE(6),
        cname: random.toString('base64', 10),
        sleptSince: () => {
          const sinceMs = this.#loop.sleptSinceMs;
          return sinceMs === undefined ? undefined : performance.timeOrigin + sinceMs;
        },
      },
      {
        send: (packet, port, address) => this.#live.get(id)?.sockets.send(packet, port, address),
        sendRtcp: (packet, port, address, isMultiplexed) =>
          this.#live.get(id)?.sockets.sendRtcp(packet, port, address, isMultiplexed),
        connect: (port, address) => this.#live.get(id)?.sockets.connect(port, address),
        disconnect: () => this.#live.get(id)?.sockets.disconnect(),
        report: (event) => this.#report(id, event),
        onDetectorError: (error) =>
          this.#post({ kind: 'detectorError', reason: describeError(error) }),
        onRecorderError: (error) =>
          this.#post({ kind: 'recorderError', reason: describeError(error) }),
      },
    );
  }

  #stream(
    live: LiveSession,
    id: number,
    { settings, phase }: Extract<MediaCommand, { kind: 'stream' }>,
  ): void {
    const { session } = live;
    if (!session.streaming.isActive) this.#startStream(live, id, settings);
    if (phase === 'ringing') session.streaming.stream?.prepare();
    else session.streaming.stream?.answer();
  }

  #startStream({ session, notes }: LiveSession, id: number, settings: StreamSettings): void {
    const queue = new PlayoutQueue(
      this.#playoutPool,
      (name) => {
        notes.returnMark(name, Date.now());
        stream.returnMark(name);
      },
      this.#played,
    );
    const stream = this.#programs.createStream(settings, queue, {
      statistics: this.#streamStatistics,
      report: (report) => {
        const forwarded = session.isPlanInControl ? withoutHangUp(report) : report;
        this.#report(id, { kind: 'stream', ordinal: settings.ordinal, report: forwarded });
      },
      warn: (warning) => this.#post({ kind: 'streamWarning', id, warning }),
      note: {
        mark: (name) => notes.add({ kind: 'mark', at: Date.now(), name }),
        clear: (droppedMs) => notes.add({ kind: 'clear', at: Date.now(), droppedMs }),
      },
      defect: (error) => this.#fail(id, `stream failed: ${describeError(error)}`),
    });
    session.streaming.start(stream, queue);
  }

  #hasStream(): boolean {
    for (const { session } of this.#live.values()) if (session.streaming.isActive) return true;
    return false;
  }

  #fail(id: number, reason: string): void {
    const live = this.#live.get(id);
    if (live === undefined) return;
    live.session.failRecording();
    this.#programs.recorders?.tick();
    this.#release(id);
    this.#report(id, { kind: 'failed', reason });
  }

  #close(id: number): void {
    // Detection must report `amd_stopped` even if the caller hasn't stopped it.
    this.#live.get(id)?.session.stopDetection('session-closed');
    this.#live.get(id)?.session.stopPlayback();
    this.#live.get(id)?.session.streaming.stop('call-ended');
    this.#reportEnvelope(id);
    this.#guard(id, () => this.#live.get(id)?.session.end());
    // The clock stops after the last session, so don't leave the end of a recording to it.
    this.#programs.recorders?.tick();
    this.#release(id);
    this.#post({ kind: 'closed', id });
  }

  #reportEnvelope(id: number): void {
    const live = this.#live.get(id);
    if (live === undefined) return;
    const loudness = live.session.envelope();
    const envelope = loudness && { ...loudness, notes: live.notes.view() };
    this.#report(id, { kind: 'envelope', envelope });
  }

  #release(id: number): void {
    const live = this.#live.get(id);
    if (live === undefined) return;
    this.#bridges.leave(id);
    this.#live.delete(id);
    live.session.streaming.stop('media-failed');
    live.sockets.close();
    this.#pool.release(live.port, performance.now());
  }

  /**
   * Passes a packet to its session. If the packet triggers a bug, only this call fails instead of
   * every call in the thread.
   */
  #receive(
    session: RtpSession,
    id: number,
    packet: Uint8Array,
    address: string,
    port: number,
  ): void {
    try {
      session.receive(packet, address, port);
    } catch (error) {
      this.#fail(id, `media session failed: ${String(error)}`);
    }
  }

  /** Like `#receive`, for what happens seldom enough to afford a closure. */
  #guard(id: number, run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#fail(id, `media session failed: ${String(error)}`);
    }
  }

  #tickAll(transmit: boolean, dueMs: number): void {
    for (const [id, { session }] of this.#live) {
      const sentBefore = this.#counts.sent;
      try {
        session.tick(transmit);
      } catch (error) {
        this.#fail(id, `media session failed: ${String(error)}`);
      }
      const sent = this.#counts.sent - sentBefore;
      if (sent > 0) this.#sendLateness.note(performance.now() - dueMs, sent);
    }
    this.#programs.recorders?.tick();
  }

  #statistics(): MediaStatistics {
    return {
      sessions: this.#live.size,
      idlePorts: this.#pool.resting,
      packetsReceived: this.#counts.received,
      packetsDiscarded: this.#counts.discarded,
      packetsForged: this.#counts.forged,
      packetsSent: this.#counts.sent,
      packetsUnsent: this.#counts.unsent,
      packetsLate: this.#counts.jitter.late,
      ticksLate: this.#loop.ticksLate,
      framesLate: this.#counts.framesLate,
      framesUnheard: Math.round(this.#counts.framesUnheard),
      maxLateMs: Math.round(this.#loop.maxLateMs),
      sendLateness: this.#sendLateness.read(),
      streams: {
        ...this.#streamStatistics,
        bytesPlayed: this.#played.bytesPlayed,
        bytesDropped: this.#played.bytesDropped,
        underruns: this.#played.underruns,
        heldBytes: this.#playoutPool.heldBytes,
      },
    };
  }
}

/**
 * Wraps `createDetector` so that recognised words are added to the call's notes. The words' offsets
 * count from the moment when the detector is created.
 */
function withNotes(createDetector: CreateDetector, notes: CallNotes): CreateDetector {
  return (settings) => {
    const startedAt = Date.now();
    return createDetector(settings, (words) => {
      for (const { text, fromMs, untilMs } of words)
        notes.add({ kind: 'words', at: startedAt + fromMs, untilAt: startedAt + untilMs, text });
    });
  };
}

/**
 * Replaces reports that would hang up the call. If a bot leaves or loses its connection while a
 * plan is in control, that only ends the stream.
 */
function withoutHangUp(report: StreamReport): StreamReport {
  if (report.kind === 'botLeft') {
    return { kind: 'stopped', reason: 'bot-closed', counts: report.counts };
  }
  return report.kind === 'lost' ? { kind: 'stopped', reason: report.reason } : report;
}

/**
 * Describes any thrown value, including its stack if it has one. Note that WebAssembly traps are
 * errors from another realm, so `instanceof` doesn't recognise them.
 */
function describeError(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
