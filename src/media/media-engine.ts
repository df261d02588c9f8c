// The worker's side: sockets, sessions, the playout clock, and answers to the main thread's messages.

import { randomBytes } from 'node:crypto';
import type { CreateDetector } from './detector-port.ts';
import type {
  FromMediaWorker,
  MediaStatistics,
  MediaWorkerData,
  ToMediaWorker,
} from './media-messages.ts';
import { PlayoutClock, phases, tickMs } from './playout.ts';
import { PortPool } from './port-pool.ts';
import { createRtpScratch, type RtpCounts, RtpSession } from './rtp-session.ts';
import { RtpSockets } from './rtp-sockets.ts';

/** Ports that another program holds; with more of them in a row the range is not ours. */
const maxBindAttempts = 8;

type Live = {
  readonly session: RtpSession;
  readonly sockets: RtpSockets;
  readonly port: number;
  readonly phase: number;
};

export class MediaEngine {
  readonly #data: MediaWorkerData;
  readonly #createDetector: CreateDetector;
  readonly #post: (message: FromMediaWorker) => void;
  readonly #pool: PortPool;
  readonly #live = new Map<number, Live>();
  /** Asked for, and closed again before the sockets were open. */
  readonly #opening = new Map<number, 'wanted' | 'unwanted'>();
  readonly #byPhase: readonly Set<RtpSession>[] = Array.from({ length: phases }, () => new Set());
  readonly #counts: RtpCounts = { received: 0, discarded: 0, sent: 0 };
  readonly #scratch = createRtpScratch();
  #clock: PlayoutClock | undefined;
  #maxLateMs = 0;

  constructor(
    data: MediaWorkerData,
    createDetector: CreateDetector,
    post: (message: FromMediaWorker) => void,
  ) {
    this.#data = data;
    this.#createDetector = createDetector;
    this.#post = post;
    this.#pool = new PortPool({ ...data, drainMs: data.portDrainMs });
  }

  handle(message: ToMediaWorker): void {
    switch (message.kind) {
      case 'open':
        void this.#open(message.id);
        return;
      case 'remote':
        this.#live.get(message.id)?.session.applyRemote(message.remote, message.phase);
        return;
      case 'detect':
        this.#live.get(message.id)?.session.startDetection(message.settings);
        return;
      case 'stop':
        this.#live.get(message.id)?.session.stopDetection(message.reason);
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

  /** Never rejects: a failure is told as `refused`. */
  async #open(id: number): Promise<void> {
    this.#opening.set(id, 'wanted');
    let reason = 'no free port';
    for (let attempt = 0; attempt < maxBindAttempts; attempt += 1) {
      const port = this.#pool.take(performance.now());
      if (port === undefined) break;
      const session = this.#createSession(id, (packet, toPort, address) =>
        this.#live.get(id)?.sockets.send(packet, toPort, address),
      );
      const opened = await RtpSockets.open(this.#data.host, port, {
        onPacket: (packet, address, fromPort) => session.receive(packet, address, fromPort),
        onError: (failure) => this.#post({ kind: 'failed', id, reason: failure }),
      });
      if (opened.kind === 'open') {
        this.#begin(id, session, opened.sockets, port);
        return;
      }
      this.#pool.release(port, performance.now());
      reason = opened.reason;
    }
    this.#opening.delete(id);
    this.#post({ kind: 'refused', id, reason });
  }

  #begin(id: number, session: RtpSession, sockets: RtpSockets, port: number): void {
    const wanted = this.#opening.get(id) === 'wanted';
    this.#opening.delete(id);
    const phase = this.#leastLoadedPhase();
    this.#live.set(id, { session, sockets, port, phase });
    this.#byPhase[phase]?.add(session);
    this.#startClock();
    this.#post({ kind: 'opened', id, port });
    if (!wanted) this.#close(id);
  }

  #createSession(
    id: number,
    send: (packet: Uint8Array, port: number, address: string) => void,
  ): RtpSession {
    const random = randomBytes(10);
    return new RtpSession(
      {
        createDetector: this.#createDetector,
        inactivityFrames: Math.ceil(this.#data.inactivityTimeoutMs / tickMs),
        scratch: this.#scratch,
        ssrc: random.readUInt32BE(0),
        firstSequence: random.readUInt16BE(4),
        firstTimestamp: random.readUInt32BE(6),
      },
      {
        send,
        onAmd: (events) => this.#post({ kind: 'amd', id, events }),
        onDtmf: (digit, durationMs) => this.#post({ kind: 'dtmf', id, digit, durationMs }),
        onInactive: () => this.#post({ kind: 'inactive', id }),
      },
      this.#counts,
    );
  }

  #close(id: number): void {
    if (this.#opening.has(id)) {
      this.#opening.set(id, 'unwanted');
      return;
    }
    const live = this.#live.get(id);
    if (live !== undefined) {
      this.#live.delete(id);
      this.#byPhase[live.phase]?.delete(live.session);
      live.sockets.close();
      this.#pool.release(live.port, performance.now());
    }
    this.#post({ kind: 'closed', id });
  }

  #leastLoadedPhase(): number {
    let best = 0;
    for (const [phase, sessions] of this.#byPhase.entries()) {
      if (sessions.size < (this.#byPhase[best]?.size ?? 0)) best = phase;
    }
    return best;
  }

  #startClock(): void {
    if (this.#clock !== undefined) return;
    this.#clock = new PlayoutClock(performance.now());
    this.#waitForStep(this.#clock);
  }

  #waitForStep(clock: PlayoutClock): void {
    const waitMs = Math.max(1, Math.ceil(clock.nextMs - performance.now()));
    // By way of setImmediate: after a stall, what the sockets hold is read before its time is said to be over.
    setTimeout(() => setImmediate(() => this.#runSteps(clock)), waitMs);
  }

  #runSteps(clock: PlayoutClock): void {
    if (this.#live.size === 0) {
      this.#clock = undefined;
      return;
    }
    const nowMs = performance.now();
    this.#maxLateMs = Math.max(this.#maxLateMs, nowMs - clock.nextMs);
    const caughtUp = clock.run(nowMs, (phase, transmit) => {
      for (const session of this.#byPhase[phase] ?? []) session.tick(transmit);
    });
    if (caughtUp) this.#waitForStep(clock);
    else setImmediate(() => this.#runSteps(clock));
  }

  #statistics(): MediaStatistics {
    return {
      sessions: this.#live.size,
      restingPorts: this.#pool.resting,
      packetsReceived: this.#counts.received,
      packetsDiscarded: this.#counts.discarded,
      packetsSent: this.#counts.sent,
      maxLateMs: Math.round(this.#maxLateMs),
    };
  }
}
