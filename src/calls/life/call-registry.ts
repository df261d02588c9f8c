// This process's calls. The registry starts calls, finds them by id, ends them at shutdown, and
// knows how many more calls this process has room for.

import { createActor } from 'xstate';
import { Changes } from '../../lib/changes.ts';
import type { Bound } from '../../lib/within.ts';
import type { AcceptedCall } from '../call-types.ts';
import type { CallId } from '../contract/identity.ts';
import type { Turn } from '../dialout-ports.ts';
import { recordObstacle } from '../recording/record-obstacles.ts';
import type { RecordAction } from '../recording/recording-contract.ts';
import { hidesKeys } from '../recording/recording-progress.ts';
import type { RuleRefusal } from '../rules/refusal.ts';
import { type StreamObstacles, streamObstacles } from '../stream/stream-effects.ts';
import { transferObstacle } from '../transfer/transfer-effects.ts';
import { type CallPorts, createCallLogic, createJournal } from './call-actors.ts';
import type { CallActor } from './call-machine.ts';
import type { CallEnd, EndCommand } from './call-outcome.ts';
import type { CallQuality } from './call-quality.ts';
import type { CallLimits, CallMachineEvent } from './call-setup.ts';

/** Without `untilTurn`, because `start` receives a separate turn for each call. */
type RegistryPorts = Omit<CallPorts, 'untilTurn'>;

export type CallRegistryOptions = {
  readonly limits: CallLimits;
  readonly maxConcurrent: number;
};

/** `end` is undefined if the call was lost, and `quality` if nothing was heard of the person. */
type CallOutput = {
  readonly end: CallEnd | undefined;
  readonly quality: CallQuality | undefined;
};

const lostOutput: CallOutput = { end: undefined, quality: undefined };

type EndListener = (callId: CallId, output: CallOutput, call: AcceptedCall) => void;

/** One of this process's calls, as command handlers see it. */
export type LiveCall = {
  readonly call: AcceptedCall;
  /** `ending`: the call is ending, or its end is being stored. */
  readonly state: 'preparing' | 'dialing' | 'ringing' | 'answering' | 'answered' | 'ending';
  /** Whether the far end accepts keys, as RTP events or by SIP INFO. */
  readonly acceptsKeys: boolean;
  /** Why a transfer can't start now. Undefined if it can. */
  readonly transferObstacle: string | undefined;
  readonly streamObstacles: StreamObstacles;
  /** Whether digits are hidden now, because the recording is paused. */
  readonly hidesKeys: boolean;
  /** Returns why the action isn't possible now. Undefined if it is. */
  recordObstacle(action: RecordAction): string | undefined;
  send(event: CallMachineEvent): void;
};

export class CallRegistry {
  readonly #ports: RegistryPorts;
  readonly #options: CallRegistryOptions;
  readonly #logic: ReturnType<typeof createCallLogic>;
  readonly #calls = new Map<CallId, CallActor>();
  readonly #turns = new Map<CallId, Turn>();
  readonly #endListeners: EndListener[] = [];
  readonly #removals = new Changes();

  constructor(ports: RegistryPorts, options: CallRegistryOptions) {
    this.#ports = ports;
    this.#options = options;
    this.#logic = createCallLogic({
      ...ports,
      untilTurn: (callId, isWanted) => this.#turns.get(callId)?.(isWanted),
    });
  }

  /** Calls the listener for every call that ends here from now on. */
  onEnded(listener: EndListener): void {
    this.#endListeners.push(listener);
  }

  get size(): number {
    return this.#calls.size;
  }

  has(callId: CallId): boolean {
    return this.#calls.has(callId);
  }

  /** Starts a call's machine. `turn` resolves when the INVITE may be sent. Default: immediately. */
  start(call: AcceptedCall, turn?: Turn): void {
    const { limits } = this.#options;
    if (turn !== undefined) this.#turns.set(call.callId, turn);
    const journal = createJournal(this.#ports, call);
    const actor = createActor(this.#logic, {
      input: { call, limits, clock: this.#ports.clock, journal },
    });
    this.#calls.set(call.callId, actor);
    actor.subscribe({
      complete: () => this.#remove(call.callId, actor.getSnapshot().output),
      error: (error: unknown) => {
        // This is a bug in the machine. Recovery will record the call's end. XState keeps a failed
        // machine's children running, so we have to close the line here.
        actor.getSnapshot().children.line?.send({ type: 'close' });
        this.#ports.logger.error({ err: error, callId: call.callId }, 'call machine failed');
        this.#remove(call.callId);
      },
    });
    actor.start();
  }

  /** @returns undefined if this process doesn't have the call */
  live(callId: CallId): LiveCall | undefined {
    const actor = this.#calls.get(callId);
    if (actor === undefined) return undefined;
    const snapshot = actor.getSnapshot();
    return {
      call: snapshot.context.progress.call,
      state: stateOf(snapshot),
      acceptsKeys: snapshot.context.keys.acceptsKeys,
      transferObstacle: transferObstacle(snapshot.context),
      streamObstacles: streamObstacles(snapshot.context),
      hidesKeys: this.hidesKeys(callId),
      recordObstacle: (action) => recordObstacle(snapshot.context, action),
      send: (event) => actor.send(event),
    };
  }

  /** Whether a digit that arrives now must be hidden. False if the call isn't here. */
  hidesKeys(callId: CallId): boolean {
    const context = this.#calls.get(callId)?.getSnapshot().context;
    return context !== undefined && hidesKeys(context.progress.recording, context.clock.now());
  }

  /** @returns false if this process doesn't have the call */
  end(callId: CallId, command: EndCommand): boolean {
    const actor = this.#calls.get(callId);
    actor?.send({ type: 'command.end', command });
    return actor !== undefined;
  }

  /**
   * Ends a call that a calling rule forbids, unless the far end has answered. Does nothing if this
   * process doesn't have the call.
   */
  refuse(callId: CallId, refusal: RuleRefusal): void {
    this.#calls.get(callId)?.send({ type: 'command.refuse', refusal });
  }

  get freePlaces(): number {
    return this.#options.maxConcurrent - this.#calls.size;
  }

  ids(): readonly CallId[] {
    return [...this.#calls.keys()];
  }

  /** Waits until all of this process's calls have ended, or until one of the bounds is reached. */
  async empty(...bounds: readonly Bound[]): Promise<void> {
    await this.#removals.until(() => this.#calls.size === 0, ...bounds);
  }

  endAll(command: EndCommand): void {
    for (const callId of this.#calls.keys()) this.end(callId, command);
  }

  /**
   * Drops all calls: closes their lines, but doesn't emit any events. Another process will record
   * their ends.
   */
  discardAll(): void {
    for (const [callId, actor] of this.#calls) {
      actor.stop();
      this.#remove(callId);
    }
  }

  #remove(callId: CallId, output: CallOutput = lostOutput): void {
    const actor = this.#calls.get(callId);
    if (actor === undefined) return;
    this.#calls.delete(callId);
    this.#turns.delete(callId);
    const { call } = actor.getSnapshot().context.progress;
    for (const listener of this.#endListeners) listener(callId, output, call);
    this.#removals.notify();
  }
}

function stateOf(snapshot: ReturnType<CallActor['getSnapshot']>): LiveCall['state'] {
  if (snapshot.matches('preparing')) return 'preparing';
  if (snapshot.matches({ calling: 'ringing' })) return 'ringing';
  if (snapshot.matches('calling')) return 'dialing';
  if (snapshot.matches('answering')) return 'answering';
  return snapshot.matches('answered') ? 'answered' : 'ending';
}
