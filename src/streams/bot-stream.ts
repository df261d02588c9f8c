// A call's stream to its bot. It connects when the call requires it, reconnects after a break, and
// ends when the bot or the call ends it or the time for reconnecting runs out. It runs in the media
// worker, and its clock is the session's.

import { type AmdEvent, verdictOf } from '../calls/detection/amd-event.ts';

import type { StreamCounts, StreamSettings } from '../calls/stream/stream.ts';
import type { TransferFailure } from '../calls/transfer/transfer.ts';
import type { AddressGuard } from '../lib/address-guard.ts';
import type { PlayoutQueue } from '../media/playout/playout-queue.ts';
import type { BotStream, StreamSink } from '../media/stream-port.ts';
import { BotInbox } from './bot-inbox.ts';
import { openTransport, ReadyTransport } from './bot-transport.ts';
import { BotVoice } from './bot-voice.ts';
import { type LinkEnd, StreamLink } from './stream-link.ts';
import type { MessageWriter } from './stream-messages.ts';

const frameMs = 20;
const ticksASecond = 1_000 / frameMs;
/** Longest time for which queued audio is played after the bot has left. */
const longestGoodbyeTicks = 500;
/** 10 s: often enough to detect a dead connection within `longestSilenceTicks`. */
const pingTicks = 500;
/** 40 s without anything from the bot: the connection is dead. */
const longestSilenceTicks = 2_000;
/**
 * Servers close a connection without a request, some after 30 s. While the phone rings, the
 * connection is therefore renewed after this time.
 */
const readyTicks = 1_250;
/**
 * Connections prepared, at most. Together they last longer than phones ring and detection takes.
 */
const maxPreparations = 8;
/**
 * Most messages kept until the bot is connected: keys and events of detection, of which a call has
 * a handful.
 */
const maxPendingMessages = 200;
/**
 * Waits before each further try at the answer, in seconds. The person waits, so the next try comes
 * soon. After five seconds the bot is given up.
 */
const firstWaits = [0.5, 1, 2];
const firstLimitTicks = 5 * ticksASecond;
/**
 * Waits before each try in mid-call, in seconds. A bot that is being redeployed takes a while, and
 * many calls reconnect to it.
 */
const againWaits = [1, 2, 4];
const againLimitTicks = 30 * ticksASecond;
/** A connection that lasted this long was good: its break starts a new series of tries. */
const goodTicks = 10 * ticksASecond;
/** Time limit of one try. */
const longestTryTicks = 5 * ticksASecond;

export type BotStreamDependencies = {
  readonly guard: AddressGuard;
  /** Monotonic clock, for durations. */
  readonly nowMs: () => number;
  /** Wall clock, for signatures. */
  readonly wallClockMs: () => number;
};

type State =
  /** The call is not answered, or no person has been detected yet. */
  | { readonly kind: 'idle' }
  | { readonly kind: 'waiting'; readonly until: number }
  | { readonly kind: 'connecting'; readonly link: StreamLink; readonly until: number }
  | {
      readonly kind: 'open';
      readonly link: StreamLink;
      readonly voice: BotVoice;
      readonly openTick: number;
      /** The tick in which the bot last sent anything. */
      heardTick: number;
    }
  /** The bot has left. What it said is still played. */
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
  /** A transport that waits for the answer until this tick. */
  #ready: { readonly transport: ReadyTransport; readonly until: number } | undefined;
  #preparations = 0;
  #isAnswered = false;
  /** Events of detection so far. A call has about a dozen. */
  readonly #amdEvents: AmdEvent[] = [];
  #pendingMessages: ((writer: MessageWriter) => string)[] = [];
  #tick = 0;
  #tryingSinceMs = 0;

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
    this.#ready?.transport.close();
    this.#ready = {
      transport: new ReadyTransport(new URL(this.#settings.url), this.#dependencies.guard),
      until: this.#tick + readyTicks,
    };
  }

  answer(): void {
    this.#isAnswered = true;
    if (this.#settings.connect === 'answered') this.#begin();
  }

  hear(frame: Uint8Array): void {
    if (this.#state.kind === 'open') this.#state.voice.hear(frame);
  }

  sendDigit(digit: string): void {
    this.#tell((writer) => writer.dtmf(digit));
  }

  sendAmd(event: AmdEvent): void {
    this.#amdEvents.push(event);
    this.#tell((writer) => writer.amd(event));
    if (event.event === 'amd_human_detected' && this.#isAnswered) this.#begin();
  }

  sendTransferFailed(failure: TransferFailure): void {
    this.#tell((writer) => writer.transferFailed(failure));
  }

  returnMark(name: string): void {
    if (this.#state.kind === 'open') this.#state.voice.tell((writer) => writer.mark(name));
  }

  tick(): void {
    this.#tick += 1;
    this.#inbox.tick();
    const state = this.#state;
    switch (state.kind) {
      case 'idle':
        if (this.#ready !== undefined && this.#tick >= this.#ready.until) this.prepare();
        break;
      case 'waiting':
        if (this.#tick >= state.until) this.#connect();
        break;
      case 'connecting':
        if (this.#tick >= state.until) state.link.abandon('timeout');
        break;
      case 'open':
        this.#watch(state);
        break;
      case 'goodbye':
        if (this.#queue.queuedBytes === 0 || this.#tick >= state.until) this.#leave();
        break;
      case 'over':
        break;
    }
  }

  stop(reason: string): void {
    const state = this.#state;
    if (state.kind === 'over') return;
    this.#become({ kind: 'over' });
    this.#ready?.transport.close();
    if (state.kind === 'open') state.voice.tell((writer) => writer.stop());
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
    this.#tryingSinceMs = nowMs();
    const transport = this.#ready?.transport.take() ?? openTransport(new URL(url), guard);
    this.#ready = undefined;
    if (transport === undefined) {
      this.#linkEnded({ kind: 'refused', reason: 'address-not-allowed' });
      return;
    }
    const timestampS = Math.floor(wallClockMs() / 1_000);
    const link = new StreamLink(
      { url, secret, timestampS, transport },
      {
        onOpen: () => this.#open(link),
        onText: (text) => this.#receive(text),
        onBinary: () => this.#inbox.receiveBinary(),
        onEnd: (end) => this.#linkEnded(end),
        onDefect: (error) => this.#sink.defect(error),
      },
    );
    this.#become({ kind: 'connecting', link, until: this.#schedule.limitOf(this.#tick) });
  }

  #open(link: StreamLink): void {
    this.#counts.connections += 1;
    const { statistics } = this.#sink;
    if (this.#counts.connections > 1) statistics.reconnects += 1;
    const voice = new BotVoice(link, this.#settings, [this.#counts, statistics]);
    const openTick = this.#tick;
    this.#become({ kind: 'open', link, voice, openTick, heardTick: openTick });
    const verdict = verdictOf(this.#amdEvents);
    voice.begin({
      ...this.#settings.customParameters,
      ...(verdict === undefined ? {} : { amd: verdict }),
      ...(this.#counts.connections > 1 ? { reconnect: '1' } : {}),
    });
    for (const write of this.#pendingMessages.splice(0)) voice.tell(write);
    const openMs = Math.round(this.#dependencies.nowMs() - this.#tryingSinceMs);
    this.#sink.report({ kind: 'opened', connection: this.#counts.connections, openMs });
  }

  #receive(text: string): void {
    if (this.#state.kind !== 'open') return;
    this.#state.heardTick = this.#tick;
    const before = this.#inbox.bytesReceived;
    this.#inbox.receive(text);
    this.#sink.statistics.bytesReceived += this.#inbox.bytesReceived - before;
  }

  #watch(state: Extract<State, { kind: 'open' }>): void {
    const silence = this.#tick - state.heardTick;
    if (silence > longestSilenceTicks) state.link.abandon('silent');
    else if (silence > 0 && silence % pingTicks === 0) {
      state.link.ping(() => {
        state.heardTick = this.#tick;
      });
    }
  }

  #linkEnded(end: LinkEnd): void {
    const state = this.#state;
    // A new connection has not set these marks, so they must not come back on it.
    this.#queue.forgetMarks();
    if (end.kind === 'closed' && state.kind === 'open') {
      this.#become({ kind: 'goodbye', until: this.#tick + longestGoodbyeTicks });
      if (this.#queue.queuedBytes === 0) this.#leave();
      return;
    }
    if (state.kind === 'open') this.#schedule.broke(state.openTick, this.#tick);
    const next = end.kind === 'refused' ? undefined : this.#schedule.next(this.#tick);
    if (next === undefined) {
      this.#become({ kind: 'over' });
      this.#sink.report({ kind: 'lost', reason: end.reason });
      return;
    }
    this.#become({ kind: 'waiting', until: next });
    this.#sink.report({ kind: 'broken', reason: end.reason });
  }

  #leave(): void {
    this.#become({ kind: 'over' });
    this.#sink.report({ kind: 'botLeft', counts: this.#summary() });
  }

  #tell(write: (writer: MessageWriter) => string): void {
    if (this.#state.kind === 'open') this.#state.voice.tell(write);
    else if (this.#state.kind !== 'over' && this.#pendingMessages.length < maxPendingMessages) {
      this.#pendingMessages.push(write);
    }
  }

  #become(state: State): void {
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
 * Decides when a bot is tried again, and for how long. It counts in ticks, because the stream has
 * no clock except that of its audio.
 */
class ReconnectSchedule {
  #waits = firstWaits;
  #limitTicks = firstLimitTicks;
  #tries = 0;
  #endTick = 0;

  /** Starts the schedule at the first try. */
  begin(tick: number): void {
    this.#endTick = tick + this.#limitTicks;
  }

  /** Records the loss of a connection that was open since `openTick`. */
  broke(openTick: number, tick: number): void {
    const isFirst = this.#waits === firstWaits;
    this.#waits = againWaits;
    this.#limitTicks = againLimitTicks;
    if (!isFirst && tick - openTick < goodTicks) return;
    this.#tries = 0;
    this.#endTick = tick + this.#limitTicks;
  }

  /** @returns the tick of the next try, or undefined if there is no further try */
  next(tick: number): number | undefined {
    const wait = this.#waits[Math.min(this.#tries, this.#waits.length - 1)] ?? 0;
    this.#tries += 1;
    const at = tick + wait * ticksASecond;
    return at < this.#endTick ? at : undefined;
  }

  /** Returns the tick at which a try that begins now is given up. */
  limitOf(tick: number): number {
    return Math.min(tick + longestTryTicks, this.#endTick);
  }
}
