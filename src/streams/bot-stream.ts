// A call's stream to its bot. The stream connects when the call is answered, or once a person has
// been detected, and reconnects if the connection breaks. It ends when the bot closes it, when the
// call ends it, or when reconnecting takes too long. It runs in the media worker, where the
// session's ticks serve as its clock.

import { type AmdEvent, verdictOf } from '../calls/detection/amd-event.ts';
import type { StreamCounts, StreamSettings } from '../calls/stream/stream.ts';
import type { StreamStop } from '../calls/stream/stream-reasons.ts';
import type { TransferFailure } from '../calls/transfer/transfer.ts';
import type { AddressGuard } from '../lib/address-guard.ts';
import type { PlayoutQueue } from '../media/playout/playout-queue.ts';
import type { BotStream, StreamSink } from '../media/stream-port.ts';
import { BotInbox } from './bot-inbox.ts';
import { BotSender } from './bot-sender.ts';
import { openTransport, PreparedTransport } from './bot-transport.ts';
import { type LinkEnd, StreamLink } from './stream-link.ts';
import type { MessageWriter } from './stream-messages.ts';

const frameMs = 20;
const ticksPerSecond = 1_000 / frameMs;
/** After the bot has left, we keep playing its queued audio for up to 10 s. */
const maxGoodbyeTicks = 500;
/**
 * We send a ping after every 10 s of silence. Several pings fit into `maxSilenceTicks`, so losing
 * one pong doesn't end the connection.
 */
const pingTicks = 500;
/** A bot that hasn't sent anything for 40 s, not even a pong, is considered dead. */
const maxSilenceTicks = 2_000;
/**
 * We replace a prepared connection every 25 s while the phone is ringing, because servers close
 * connections on which no request arrives, some of them after just 30 s.
 */
const preparedTicks = 1_250;
/**
 * Eight prepared connections, one after the other, cover 200 s. No phone rings and no detection
 * runs that long.
 */
const maxPreparations = 8;
/**
 * Limits the keys and detection events that are waiting for the connection. A call usually has a
 * handful.
 */
const maxPendingMessages = 200;
/**
 * Delays between the first attempts to connect, in seconds. They're short because the person is
 * already waiting, and we give up after five seconds.
 */
const firstDelays = [0.5, 1, 2];
const firstLimitTicks = 5 * ticksPerSecond;
/**
 * Delays before each attempt to reconnect in mid-call, in seconds. Here we can wait longer, because
 * a redeployment takes a while, and many calls may be reconnecting to the bot at the same time.
 */
const reconnectDelays = [1, 2, 4];
const reconnectLimitTicks = 30 * ticksPerSecond;
/**
 * A connection that has lasted this long was healthy, so if it breaks, we start a new series of
 * attempts.
 */
const healthyTicks = 10 * ticksPerSecond;
/** Time limit for one attempt. */
const attemptTimeoutTicks = 5 * ticksPerSecond;

export type BotStreamDependencies = {
  readonly guard: AddressGuard;
  /** Monotonic clock, for durations. */
  readonly nowMs: () => number;
  /** Wall clock, for signatures. */
  readonly wallClockMs: () => number;
};

type State =
  /** Either the call hasn't been answered yet, or the bot is waiting until a person is detected. */
  | { readonly kind: 'idle' }
  | { readonly kind: 'waiting'; readonly until: number }
  | { readonly kind: 'connecting'; readonly link: StreamLink; readonly until: number }
  | {
      readonly kind: 'open';
      readonly link: StreamLink;
      readonly sender: BotSender;
      readonly openTick: number;
      /** The tick at which the bot last sent anything. */
      heardTick: number;
    }
  /** The bot has left, but we're still playing its queued audio. */
  | { readonly kind: 'goodbye'; readonly until: number }
  | { readonly kind: 'over' };

export class CallStream implements BotStream {
  readonly #settings: StreamSettings;
  readonly #queue: PlayoutQueue;
  readonly #sink: StreamSink;
  readonly #dependencies: BotStreamDependencies;
  readonly #inbox: BotInbox;
  readonly #schedule = new ReconnectSchedule();
  readonly #counts = { framesSent: 0, framesDropped: 0, connections: 0 };
  #state: State = { kind: 'idle' };
  /** The transport that we've prepared for the answer. It's due for replacement at tick `until`. */
  #prepared: { readonly transport: PreparedTransport; readonly until: number } | undefined;
  #preparations = 0;
  #isAnswered = false;
  /** All detection events so far, about a dozen per call. */
  readonly #amdEvents: AmdEvent[] = [];
  #pendingMessages: ((writer: MessageWriter) => string)[] = [];
  #tick = 0;
  #connectStartMs = 0;

  constructor(
    settings: StreamSettings,
    queue: PlayoutQueue,
    sink: StreamSink,
    dependencies: BotStreamDependencies,
  ) {
    this.#settings = settings;
    this.#queue = queue;
    this.#sink = sink;
    this.#dependencies = dependencies;
    this.#inbox = new BotInbox(settings.streamSid, queue, {
      onIgnored: () => {
        sink.statistics.messagesIgnored += 1;
      },
      warn: (warning) => sink.warn(warning),
      note: sink.note,
    });
  }

  prepare(): void {
    if (this.#state.kind !== 'idle' || this.#preparations === maxPreparations) return;
    this.#preparations += 1;
    this.#prepared?.transport.close();
    this.#prepared = {
      transport: new PreparedTransport(new URL(this.#settings.url), this.#dependencies.guard),
      until: this.#tick + preparedTicks,
    };
  }

  answer(): void {
    this.#isAnswered = true;
    if (this.#settings.connect === 'answered') this.#begin();
  }

  hear(frame: Uint8Array): void {
    if (this.#state.kind === 'open') this.#state.sender.hear(frame);
  }

  sendDigit(digit: string): void {
    this.#send((writer) => writer.dtmf(digit));
  }

  sendAmd(event: AmdEvent): void {
    this.#amdEvents.push(event);
    this.#send((writer) => writer.amd(event));
    if (event.event === 'amd_human_detected' && this.#isAnswered) this.#begin();
  }

  sendTransferFailed(failure: TransferFailure): void {
    this.#send((writer) => writer.transferFailed(failure));
  }

  returnMark(name: string): void {
    if (this.#state.kind === 'open') this.#state.sender.send((writer) => writer.mark(name));
  }

  tick(): void {
    this.#tick += 1;
    this.#inbox.tick();
    const state = this.#state;
    switch (state.kind) {
      case 'idle':
        if (this.#prepared !== undefined && this.#tick >= this.#prepared.until) this.prepare();
        break;
      case 'waiting':
        if (this.#tick >= state.until) this.#connect();
        break;
      case 'connecting':
        if (this.#tick >= state.until) state.link.abandon('timeout');
        break;
      case 'open':
        this.#checkBot(state);
        break;
      case 'goodbye':
        if (this.#queue.queuedBytes === 0 || this.#tick >= state.until) this.#finishGoodbye();
        break;
      case 'over':
        break;
    }
  }

  stop(reason: StreamStop): void {
    const state = this.#state;
    if (state.kind === 'over') return;
    this.#enter({ kind: 'over' });
    this.#prepared?.transport.close();
    if (state.kind === 'open') state.sender.send((writer) => writer.stop());
    if (state.kind === 'open' || state.kind === 'connecting') state.link.close();
    if (this.#counts.connections > 0) {
      this.#sink.report({ kind: 'stopped', reason, counts: this.#summary() });
    }
  }

  #begin(): void {
    if (this.#state.kind !== 'idle') return;
    this.#schedule.begin(this.#tick);
    this.#connect();
  }

  #connect(): void {
    const { url, secret } = this.#settings;
    const { guard, nowMs, wallClockMs } = this.#dependencies;
    this.#connectStartMs = nowMs();
    const transport = this.#prepared?.transport.take() ?? openTransport(new URL(url), guard);
    this.#prepared = undefined;
    if (transport === undefined) {
      this.#onLinkEnd({ kind: 'refused', reason: 'address-not-allowed' });
      return;
    }
    const timestampS = Math.floor(wallClockMs() / 1_000);
    const link = new StreamLink(
      { url, secret, timestampS, transport },
      {
        onOpen: () => this.#open(link),
        onText: (text) => this.#receive(text),
        onBinary: () => this.#inbox.receiveBinary(),
        onPong: () => this.#noteHeard(),
        onEnd: (end) => this.#onLinkEnd(end),
        onDefect: (error) => this.#sink.defect(error),
      },
    );
    this.#enter({ kind: 'connecting', link, until: this.#schedule.attemptDeadline(this.#tick) });
  }

  #open(link: StreamLink): void {
    this.#counts.connections += 1;
    const { statistics } = this.#sink;
    if (this.#counts.connections > 1) statistics.reconnects += 1;
    const sender = new BotSender(link, this.#settings, [this.#counts, statistics]);
    const openTick = this.#tick;
    this.#enter({ kind: 'open', link, sender, openTick, heardTick: openTick });
    const verdict = verdictOf(this.#amdEvents);
    sender.begin({
      ...this.#settings.customParameters,
      ...(verdict === undefined ? {} : { amd: verdict }),
      ...(this.#counts.connections > 1 ? { reconnect: '1' } : {}),
    });
    for (const write of this.#pendingMessages.splice(0)) sender.send(write);
    const openMs = Math.round(this.#dependencies.nowMs() - this.#connectStartMs);
    this.#sink.report({ kind: 'opened', connection: this.#counts.connections, openMs });
  }

  #receive(text: string): void {
    if (this.#state.kind !== 'open') return;
    this.#noteHeard();
    const before = this.#inbox.bytesReceived;
    this.#inbox.receive(text);
    this.#sink.statistics.bytesReceived += this.#inbox.bytesReceived - before;
  }

  #checkBot(state: Extract<State, { kind: 'open' }>): void {
    const silence = this.#tick - state.heardTick;
    if (silence > maxSilenceTicks) state.link.abandon('silent');
    else if (silence > 0 && silence % pingTicks === 0) state.link.ping();
  }

  #noteHeard(): void {
    if (this.#state.kind === 'open') this.#state.heardTick = this.#tick;
  }

  #onLinkEnd(end: LinkEnd): void {
    const state = this.#state;
    // These marks were set on the old connection, so they must not come back on a new one.
    this.#queue.forgetMarks();
    if (end.kind === 'closed' && state.kind === 'open') {
      this.#enter({ kind: 'goodbye', until: this.#tick + maxGoodbyeTicks });
      if (this.#queue.queuedBytes === 0) this.#finishGoodbye();
      return;
    }
    if (state.kind === 'open') this.#schedule.connectionLost(state.openTick, this.#tick);
    const next = end.kind === 'refused' ? undefined : this.#schedule.next(this.#tick);
    if (next === undefined) {
      this.#enter({ kind: 'over' });
      this.#sink.report({ kind: 'lost', reason: end.reason });
      return;
    }
    this.#enter({ kind: 'waiting', until: next });
    this.#sink.report({ kind: 'broken', reason: end.reason });
  }

  #finishGoodbye(): void {
    this.#enter({ kind: 'over' });
    this.#sink.report({ kind: 'botLeft', counts: this.#summary() });
  }

  #send(write: (writer: MessageWriter) => string): void {
    if (this.#state.kind === 'open') this.#state.sender.send(write);
    else if (this.#state.kind !== 'over' && this.#pendingMessages.length < maxPendingMessages) {
      this.#pendingMessages.push(write);
    }
  }

  #enter(state: State): void {
    if (this.#state.kind === 'open') this.#sink.statistics.open -= 1;
    if (state.kind === 'open') this.#sink.statistics.open += 1;
    this.#state = state;
  }

  #summary(): StreamCounts {
    const { bytesPlayed, bytesDropped, underruns } = this.#queue.statistics;
    return {
      connections: this.#counts.connections,
      playedMs: Math.round(bytesPlayed / 8),
      droppedMs: Math.round(bytesDropped / 8),
      underruns,
      unheardMs: this.#counts.framesDropped * frameMs,
      ignoredMessages: this.#inbox.ignored,
    };
  }
}

/**
 * Decides when to try to connect next, and when to give up. The schedule counts ticks, because the
 * audio clock is the only clock that the stream has.
 */
class ReconnectSchedule {
  #delays = firstDelays;
  #limitTicks = firstLimitTicks;
  #attempts = 0;
  #endTick = 0;

  /** Starts the schedule with the first attempt. */
  begin(tick: number): void {
    this.#endTick = tick + this.#limitTicks;
  }

  /** Records that we lost a connection which opened at `openTick`. */
  connectionLost(openTick: number, tick: number): void {
    const isFirst = this.#delays === firstDelays;
    this.#delays = reconnectDelays;
    this.#limitTicks = reconnectLimitTicks;
    if (!isFirst && tick - openTick < healthyTicks) return;
    this.#attempts = 0;
    this.#endTick = tick + this.#limitTicks;
  }

  /** @returns the tick for the next attempt, or undefined to give up */
  next(tick: number): number | undefined {
    const delay = this.#delays[Math.min(this.#attempts, this.#delays.length - 1)] ?? 0;
    this.#attempts += 1;
    const at = tick + delay * ticksPerSecond;
    return at < this.#endTick ? at : undefined;
  }

  /** Returns the tick by which an attempt that starts at `tick` must succeed. */
  attemptDeadline(tick: number): number {
    return Math.min(tick + attemptTimeoutTicks, this.#endTick);
  }
}
