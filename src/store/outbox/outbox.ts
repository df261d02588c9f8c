// What happened to the calls of this process, on its way into SQL: one step a call waits, and what comes meanwhile is folded into
// it. All that wait share a statement.
//
// waiting    In memory. Left with the next statement: at once where an answer is among what waits, else after some
//            milliseconds, so that what comes close together shares a commit.
// under way  In a statement. Stored: told to the appender, and to `onStored`. No row: the call has ended or is another
//            process's, and nothing more of it is taken here. SQL is unreachable: it waits again, before what came meanwhile, and may
//            be stored already. SQL refuses its content: it is left out, but for the call's end.
//
// `stop` leaves what waits: the next process finds the calls without their ends.

import { setTimeout as pause } from 'node:timers/promises';
import type { AcceptedCall } from '../../calls/call-types.ts';
import type { CallId } from '../../calls/contract/identity.ts';
import { type CallStep, eventsOf, fold } from '../../calls/life/call-step.ts';
import type { CallOutbox, StepResult } from '../../calls/ports.ts';
import type { Logger } from '../../lib/logger.ts';
import { within } from '../../lib/within.ts';
import { dayOf } from '../days.ts';
import { type Settled, writeIsolated } from '../group-writer.ts';
import { isRefusedData, isUnreachable } from '../sql-errors.ts';
import type { AppendedStep, WaitingStep } from './call-appends.ts';

export type OutboxPorts = {
  readonly append: (steps: readonly WaitingStep[]) => Promise<readonly AppendedStep[]>;
  readonly onStored: (
    call: AcceptedCall,
    stored: Extract<AppendedStep, { kind: 'stored' }>,
    how: Pick<Entry, 'isUntaken' | 'isRepeated' | 'isRecovered'>,
  ) => void;
  readonly logger: Logger;
};

/** Calls in one statement. */
const maxBatch = 200;
/** What is not an answer waits so long for company: far below what a person or a receiver notices. */
const lingerMs = 8;
/** Minutes without SQL at full load; some 200 MB. */
const maxWaitingEvents = 100_000;
const firstRetryMs = 50;
const maxRetryMs = 2_000;

type Waiter = {
  readonly resolve: (result: StepResult) => void;
  readonly reject: (error: Error) => void;
};
type Entry = WaitingStep & { readonly isRecovered: boolean; readonly waiters: readonly Waiter[] };

export type AppendOptions = {
  /** Of a call that no process has taken. */
  readonly isUntaken?: boolean;
  /** SQL may hold some of it, e.g. from a version that stored events in another way. */
  readonly isRepeated?: boolean;
  /** A far end may be left in the call: recovery, which hangs up, publishes its events and settles it. */
  readonly isRecovered?: boolean;
};

export class Outbox implements CallOutbox {
  readonly #ports: OutboxPorts;
  readonly #waiting = new Map<CallId, Entry>();
  readonly #underWay = new Map<CallId, Entry>();
  readonly #stopped = new AbortController();
  #waitingEvents = 0;
  #retryMs = 0;
  #timer: NodeJS.Timeout | undefined;
  /** While SQL is unreachable: an answer does not wait for its end. */
  #pausing: AbortController | undefined;
  #isStopping = false;
  #running: Promise<void> | undefined;

  constructor(ports: OutboxPorts) {
    this.#ports = ports;
  }

  append(call: AcceptedCall, step: CallStep, options: AppendOptions = {}): Promise<StepResult> {
    const count = eventsOf(step).length;
    if (this.#stopped.signal.aborted) {
      return Promise.reject(new Error('events are not stored any more: this process ends'));
    }
    if (this.#waitingEvents + count > maxWaitingEvents) {
      return Promise.reject(
        new Error(`the database is unreachable: ${maxWaitingEvents} events wait for it`),
      );
    }
    return new Promise((resolve, reject) => {
      const { isUntaken = false, isRepeated = false, isRecovered = false } = options;
      const waiters = [{ resolve, reject }];
      this.#put({ call, step, isUntaken, isRepeated, isRecovered, waiters });
      this.#schedule(step.answeredAt !== undefined);
    });
  }

  /** Calls of which something is not stored. */
  size(): number {
    return this.#waiting.size + this.#underWay.size;
  }

  holds(callId: CallId): boolean {
    return this.#waiting.has(callId) || this.#underWay.has(callId);
  }

  /** What waits is stored, if that is possible within this. Then nothing is any more. */
  async stop(timeoutMs: number): Promise<void> {
    this.#isStopping = true;
    this.#schedule(true);
    await within(this.#drained(), timeoutMs);
    this.#stopped.abort();
    clearTimeout(this.#timer);
    // What is under way may be stored all the same.
    const error = new Error('stopped before it was known to be stored');
    for (const { waiters } of [...this.#waiting.values(), ...this.#underWay.values()])
      for (const waiter of waiters) waiter.reject(error);
    this.#waiting.clear();
  }

  async #drained(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  /** Behind what waits of its call. */
  #put(entry: Entry): void {
    const present = this.#waiting.get(entry.call.callId);
    this.#set(present === undefined ? entry : merged(present, entry));
  }

  /** In the place that its call has. */
  #set(entry: Entry): void {
    const { callId } = entry.call;
    const present = this.#waiting.get(callId);
    if (present !== undefined) this.#waitingEvents -= eventsOf(present.step).length;
    this.#waitingEvents += eventsOf(entry.step).length;
    this.#waiting.set(callId, entry);
  }

  #remove(callId: CallId): void {
    const present = this.#waiting.get(callId);
    if (present === undefined) return;
    this.#waitingEvents -= eventsOf(present.step).length;
    this.#waiting.delete(callId);
  }

  #schedule(isUrgent: boolean): void {
    if (isUrgent) this.#pausing?.abort();
    if (this.#running !== undefined) return;
    if (isUrgent) {
      // The microtask lets everything of this turn of the loop into the same statement.
      this.#running = Promise.resolve()
        .then(() => this.#run())
        .finally(() => {
          this.#running = undefined;
          if (this.#waiting.size > 0 && !this.#stopped.signal.aborted) {
            this.#schedule(this.#isStopping);
          }
        });
      clearTimeout(this.#timer);
      this.#timer = undefined;
    } else {
      this.#timer ??= setTimeout(() => {
        this.#timer = undefined;
        this.#schedule(true);
      }, lingerMs);
    }
  }

  async #run(): Promise<void> {
    while (this.#waiting.size > 0 && !this.#stopped.signal.aborted) {
      const batch = this.#takeBatch();
      const results = await this.#write(batch);
      const failures = batch.flatMap((entry, index) => {
        this.#underWay.delete(entry.call.callId);
        // One result for each.
        return this.#settle(entry, results[index] as Settled<AppendedStep>);
      });
      if (failures.length === 0) this.#retryMs = 0;
      else await this.#pauseAfter(failures[0], failures.length);
    }
  }

  /** A call that makes its statement fail, for whatever reason, must not hold the others up: then each has its own. */
  async #write(batch: readonly Entry[]): Promise<readonly Settled<AppendedStep>[]> {
    const { append } = this.#ports;
    const results = await writeIsolated(batch, append);
    const [first] = results;
    const isStrange =
      first?.ok === false && !isUnreachable(first.error) && !isRefusedData(first.error);
    if (!isStrange || batch.length === 1) return results;
    const single: Settled<AppendedStep>[] = [];
    for (const entry of batch) single.push(...(await writeIsolated([entry], append)));
    return single;
  }

  /** Why it waits again; nothing where it does not. */
  #settle(entry: Entry, result: Settled<AppendedStep>): readonly unknown[] {
    if (result.ok) this.#tell(entry, result.value);
    else if (isRefusedData(result.error)) this.#leaveOut(entry, result.error);
    else {
      this.#postpone(entry);
      return [result.error];
    }
    return [];
  }

  async #pauseAfter(failure: unknown, calls: number): Promise<void> {
    this.#retryMs = Math.min(maxRetryMs, Math.max(firstRetryMs, this.#retryMs * 2));
    const what = { err: failure, calls, retryMs: this.#retryMs };
    this.#ports.logger.warn(what, 'events are not stored, trying again');
    // What failed alone is tried with what comes next.
    if ([...this.#waiting.values()].some(({ isRepeated }) => !isRepeated)) return;
    this.#pausing = new AbortController();
    const signal = AbortSignal.any([this.#stopped.signal, this.#pausing.signal]);
    await pause(this.#retryMs, undefined, { signal }).catch(() => undefined);
    this.#pausing = undefined;
  }

  /** Takes waiting steps of calls of one day, answers first: a person is on the line and hears nothing yet. */
  #takeBatch(): readonly Entry[] {
    const [first, ...others] = this.#waiting.values();
    if (first === undefined) return [];
    const day = dayOf(first.call.acceptedAt);
    const waiting = [first, ...others.filter(({ call }) => dayOf(call.acceptedAt) === day)];
    const isAnswer = ({ step }: Entry) => step.answeredAt !== undefined;
    const inOrder =
      waiting.length <= maxBatch
        ? waiting
        : [...waiting.filter(isAnswer), ...waiting.filter((entry) => !isAnswer(entry))];
    const batch = inOrder.slice(0, maxBatch);
    for (const entry of batch) {
      this.#remove(entry.call.callId);
      this.#underWay.set(entry.call.callId, entry);
    }
    return batch;
  }

  #tell(entry: Entry, appended: AppendedStep): void {
    const { call, isUntaken, isRepeated, isRecovered, waiters } = entry;
    if (appended.kind !== 'stored') {
      this.#ports.logger.warn(
        { callId: call.callId, why: appended.kind },
        'a call was ended by another process: what happened to it here is not stored',
      );
    }
    for (const { resolve } of waiters) resolve(appended.kind === 'stored' ? 'stored' : 'not owned');
    if (appended.kind !== 'stored') return;
    try {
      this.#ports.onStored(call, appended, { isUntaken, isRepeated, isRecovered });
    } catch (error) {
      // What it owes is in SQL, and found there.
      this.#ports.logger.error({ err: error, callId: call.callId }, 'stored events are told later');
    }
  }

  /** Its content is what is wrong. The call gets its end all the same. */
  #leaveOut(entry: Entry, cause: unknown): void {
    const { call, step, waiters } = entry;
    const { ending } = step;
    this.#ports.logger.error(
      { err: cause, callId: call.callId, events: step.events.map(({ type }) => type) },
      'events of a call are not stored',
    );
    if (ending !== undefined && step.events.length > 0) {
      this.#put({ ...entry, step: { events: [], ending } });
      return;
    }
    for (const { reject } of waiters) reject(new Error('the database refuses it', { cause }));
  }

  /** Before what came meanwhile. It may be stored all the same. */
  #postpone(entry: Entry): void {
    const again: Entry = { ...entry, isRepeated: true };
    const later = this.#waiting.get(entry.call.callId);
    this.#set(later === undefined ? again : merged(again, later));
  }
}

function merged(earlier: Entry, later: Entry): Entry {
  return {
    ...earlier,
    step: fold(earlier.step, later.step),
    isRepeated: earlier.isRepeated || later.isRepeated,
    isRecovered: earlier.isRecovered || later.isRecovered,
    waiters: [...earlier.waiters, ...later.waiters],
  };
}
