// Stores the progress of this process's calls in the database. A step consists of a call's new
// events and the state that they lead to. Each call has at most one waiting step, because later
// steps are folded into it. Waiting steps of different calls share a statement.
//
// A step goes through two states:
//
// waiting: the step is in memory until the next statement is sent. If one of the waiting steps says
// that a callee has picked up, or has opted out, the statement is sent immediately. Otherwise it's
// sent after a few milliseconds, so that steps in quick succession share a commit.
//
// under way: the step is part of a statement that the database is executing, with four possible
// results:
// - Stored: the outbox reports this to the appender and to `onStored`.
// - No row: the call has ended or another process owns it, so this process stops storing the call's
//   steps.
// - The database is unreachable: the step goes back to waiting, ahead of the call's later steps.
//   Note that the database may already have stored it.
// - The database rejects the content: the outbox drops the step. If the step ends the call, or the
//   person opted out, only its other events are dropped.
//
// `stop` abandons any steps that are still waiting. The next process then finds calls that haven't
// been marked as ended.
//
// An opt-out is lost only if the process dies before the commit, which begins at once. Its step is
// accepted even if the outbox is full: each call has at most one.

import { setTimeout as pause } from 'node:timers/promises';
import type { AcceptedCall } from '../../calls/call-types.ts';
import type { CallId } from '../../calls/contract/identity.ts';
import { type CallStep, eventsOf, fold, optOutOf } from '../../calls/life/call-step.ts';
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

/** Maximum number of calls per statement. */
const maxBatch = 200;
/**
 * How long a step waits for other steps, unless it contains an answer. The delay is too short to be
 * noticed by anyone on the phone or by the servers that receive notifications.
 */
const lingerMs = 8;
/**
 * At full load, this many events accumulate if the database is down for several minutes. They use
 * about 200 MB.
 */
const maxWaitingEvents = 100_000;
const firstRetryMs = 50;
const maxRetryMs = 2_000;

type Waiter = {
  readonly resolve: (result: StepResult) => void;
  readonly reject: (error: Error) => void;
};
type Entry = WaitingStep & { readonly isRecovered: boolean; readonly waiters: readonly Waiter[] };

export type AppendOptions = {
  /** True if no process has claimed the call yet. */
  readonly isUntaken?: boolean;
  /**
   * True if the database may already contain part of the step, because another process or an
   * earlier attempt may have stored it.
   */
  readonly isRepeated?: boolean;
  /**
   * True if recovery owns this call. If the callee is still connected, recovery hangs up on them.
   * It also publishes the call's events and marks the call as settled.
   */
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
  /**
   * Set while we pause because the database is unreachable. A step that contains an answer aborts
   * the pause.
   */
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
    const isFull = this.#waitingEvents + count > maxWaitingEvents;
    if (isFull && optOutOf(step) === undefined) {
      return Promise.reject(
        new Error(`the database is unreachable: ${maxWaitingEvents} events wait for it`),
      );
    }
    return new Promise((resolve, reject) => {
      const { isUntaken = false, isRepeated = false, isRecovered = false } = options;
      const waiters = [{ resolve, reject }];
      this.#put({ call, step, isUntaken, isRepeated, isRecovered, waiters });
      this.#schedule(isUrgent(step));
    });
  }

  /** Returns the number of calls with a step that hasn't been stored yet. */
  size(): number {
    return this.#waiting.size + this.#underWay.size;
  }

  holds(callId: CallId): boolean {
    return this.#waiting.has(callId) || this.#underWay.has(callId);
  }

  /**
   * Keeps storing waiting steps for at most `timeoutMs`. After that, the outbox won't store
   * anything.
   */
  async stop(timeoutMs: number): Promise<void> {
    this.#isStopping = true;
    this.#schedule(true);
    await within(this.#drained(), timeoutMs);
    this.#stopped.abort();
    clearTimeout(this.#timer);
    // The database may still commit the steps that are under way.
    const error = new Error('stopped before it was known to be stored');
    for (const { call, step, waiters } of [...this.#waiting.values(), ...this.#underWay.values()]) {
      if (optOutOf(step) !== undefined) {
        this.#ports.logger.error({ callId: call.callId }, 'an opt-out may not be stored');
      }
      for (const waiter of waiters) waiter.reject(error);
    }
    this.#waiting.clear();
  }

  async #drained(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  /** Appends a step to the call's waiting step, if there is one. */
  #put(entry: Entry): void {
    const present = this.#waiting.get(entry.call.callId);
    this.#set(present === undefined ? entry : merged(present, entry));
  }

  /** Replaces a call's waiting step. The call keeps its place in the queue. */
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

  #schedule(isNow: boolean): void {
    if (isNow) this.#pausing?.abort();
    if (this.#running !== undefined) return;
    if (isNow) {
      // The microtask lets all steps of this event loop turn share one statement.
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
        // `#write` returns one result for each entry.
        return this.#settle(entry, results[index] as Settled<AppendedStep>);
      });
      if (failures.length === 0) this.#retryMs = 0;
      else await this.#pauseAfter(failures[0], failures.length);
    }
  }

  /**
   * Writes a batch. If that fails for an unknown reason, we retry each call in a statement of its
   * own, so that one bad call doesn't hold up the others.
   */
  async #write(batch: readonly Entry[]): Promise<readonly Settled<AppendedStep>[]> {
    const { append } = this.#ports;
    const results = await writeIsolated(batch, append);
    const [first] = results;
    const isUnexpected =
      first?.ok === false && !isUnreachable(first.error) && !isRefusedData(first.error);
    if (!isUnexpected || batch.length === 1) return results;
    const single: Settled<AppendedStep>[] = [];
    for (const entry of batch) single.push(...(await writeIsolated([entry], append)));
    return single;
  }

  /** Handles the result for an entry. */
  #settle(entry: Entry, result: Settled<AppendedStep>): readonly unknown[] {
    if (result.ok) this.#report(entry, result.value);
    else if (isRefusedData(result.error)) this.#drop(entry, result.error);
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
    // If new steps are waiting, retry the failed steps together with them, without a pause.
    if ([...this.#waiting.values()].some(({ isRepeated }) => !isRepeated)) return;
    this.#pausing = new AbortController();
    const signal = AbortSignal.any([this.#stopped.signal, this.#pausing.signal]);
    await pause(this.#retryMs, undefined, { signal }).catch(() => undefined);
    this.#pausing = undefined;
  }

  /**
   * Removes the next batch from the waiting steps. All its calls were accepted on the same day.
   * Answers and opt-outs go first.
   */
  #takeBatch(): readonly Entry[] {
    const [first, ...others] = this.#waiting.values();
    if (first === undefined) return [];
    const day = dayOf(first.call.acceptedAt);
    const waiting = [first, ...others.filter(({ call }) => dayOf(call.acceptedAt) === day)];
    const isFirst = ({ step }: Entry) => isUrgent(step);
    const inOrder =
      waiting.length <= maxBatch
        ? waiting
        : [...waiting.filter(isFirst), ...waiting.filter((entry) => !isFirst(entry))];
    const batch = inOrder.slice(0, maxBatch);
    for (const entry of batch) {
      this.#remove(entry.call.callId);
      this.#underWay.set(entry.call.callId, entry);
    }
    return batch;
  }

  #report(entry: Entry, appended: AppendedStep): void {
    const { call, isUntaken, isRepeated, isRecovered, waiters } = entry;
    if (appended.kind !== 'stored') {
      this.#ports.logger.warn(
        { callId: call.callId, why: appended.kind },
        'another process ended or owns a call: its events from this process are not stored',
      );
    }
    for (const { resolve } of waiters) resolve(appended.kind === 'stored' ? 'stored' : 'not owned');
    if (appended.kind !== 'stored') return;
    try {
      this.#ports.onStored(call, appended, { isUntaken, isRepeated, isRecovered });
    } catch (error) {
      // The step's notifications are in the database, so the dispatcher will find them there.
      this.#ports.logger.error(
        { err: error, callId: call.callId },
        'stored events are published and notified late',
      );
    }
  }

  /**
   * Drops a step whose content the database rejects. The call is still marked as ended, and the
   * person's opt-out stored, unless the opt-out itself is what the database rejects.
   */
  #drop(entry: Entry, cause: unknown): void {
    const { call, step, waiters } = entry;
    const { ending } = step;
    const optOut = optOutOf(step);
    const kept = optOut === undefined || step.events.length === 1 ? [] : [optOut];
    this.#ports.logger.error(
      { err: cause, callId: call.callId, events: step.events.map(({ type }) => type) },
      'events of a call are not stored',
    );
    const hasLess = kept.length < step.events.length;
    if (hasLess && (ending !== undefined || kept.length > 0)) {
      const left = { events: kept, ...(ending === undefined ? {} : { ending }) };
      this.#putBack({ ...entry, step: left });
      return;
    }
    for (const { reject } of waiters) reject(new Error('the database refuses it', { cause }));
  }

  /** Puts an entry back that the database may already have stored. */
  #postpone(entry: Entry): void {
    this.#putBack({ ...entry, isRepeated: true });
  }

  /** Puts the entry back, ahead of the call's later steps. */
  #putBack(entry: Entry): void {
    const later = this.#waiting.get(entry.call.callId);
    this.#set(later === undefined ? entry : merged(entry, later));
  }
}

/**
 * A person who picked up can't hear anything before the answer is stored. An opt-out would be lost
 * with this process.
 */
function isUrgent(step: CallStep): boolean {
  return step.answeredAt !== undefined || optOutOf(step) !== undefined;
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
