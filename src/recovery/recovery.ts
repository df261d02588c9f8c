// Finishes the work of lost processes: ends the calls that they were dialling or had up, and
// settles ends that they stored. Each call gets exactly one terminal event, and its far end gets a
// BYE. No call is dialled again.

import { setMaxListeners } from 'node:events';
import type { AcceptedCall } from '../calls/call-types.ts';
import type { CallEvent, TerminalEvent } from '../calls/contract/call-event.ts';
import type { CallId } from '../calls/contract/identity.ts';
import type { LegEndResult, StoredLeg } from '../calls/contract/stored-leg.ts';
import { endOfLoss, endOfUnknown, type GatewayLoss } from '../calls/life/call-outcome.ts';
import type {
  CallOutbox,
  Clock,
  SipPort,
  Unfinished,
  UnfinishedCall,
  UnsettledEnd,
} from '../calls/ports.ts';
import type { EndRecorder } from '../dialout/end-recorder.ts';
import { inBackground } from '../lib/in-background.ts';
import type { Logger } from '../lib/logger.ts';
import { takeTurns } from '../lib/turns.ts';
import { within } from '../lib/within.ts';
import { rebuild } from './rebuild.ts';

export type RecoveryPorts = {
  readonly ledger: {
    unfinished(
      ownerId: string,
      which: Unfinished,
      limit: number,
    ): Promise<readonly UnfinishedCall[]>;
    unsettledEnds(
      ownerId: string,
      except: readonly CallId[],
      limit: number,
    ): Promise<readonly UnsettledEnd[]>;
  };
  /**
   * Returns the call's events on the stream, in order. The stream may hold more events than SQL.
   */
  readonly eventsOnStream: (call: AcceptedCall) => Promise<readonly CallEvent[]>;
  readonly sip: Pick<SipPort, 'endOrphan'>;
  /**
   * Returns the calls that this process still handles: their legs are on the wire. They need no
   * recovery.
   */
  readonly underWay: () => readonly CallId[];
  /** Returns true if events of the call are still being stored or published by this process. */
  readonly isUnderWay: (callId: CallId) => boolean;
  readonly ends: Pick<EndRecorder, 'record'>;
  readonly outbox: CallOutbox;
  readonly publish: (events: readonly CallEvent[]) => Promise<void>;
  /**
   * Marks the call as settled: all its events are on the stream, and no far end is in it any more.
   */
  readonly settle: (callId: CallId) => void;
  /** Records that no far end is in the call any more. Its events may still be owed. */
  readonly legsAreOver: (callId: CallId) => void;
  readonly clock: Clock;
  readonly logger: Logger;
};

/** Number of calls that are ended or settled concurrently. */
const batchSize = 50;
/** Higher than the number of live calls of one process, so that they cannot hide a lost call. */
const unfinishedLimit = 10_000;
/**
 * Maximum number of concurrent hang-ups. A far end that does not answer takes seconds, and there
 * may be hundreds of them.
 */
const maxHangUpsAtOnce = 100;
/**
 * Bounds the wait for an unreachable engine. By then, the far end has given up on its own (RFC 3261
 * has no timer longer than 3 min).
 */
const farEndTries = 150;
const farEndPauseMs = 2_000;
/**
 * Bounds the wait for a late 200 OK after a CANCEL. The callee retransmits it for 32 s (RFC 3261,
 * 13.3.1.4). Each try itself takes half a second, in addition to the pause.
 */
const lateAnswerTries = 32;
const lateAnswerPauseMs = 500;

// States of a call without a machine:
// - unfinished: SQL has no end of the call and assigns it to this process. The call was taken over
//   from a lost process, or this process asked for it by id. Recovery begins to hang up its far
//   end, reads its events, and stores its end. Left when SQL has the end. If that fails, the next
//   sweep finds the call again.
// - owed: SQL has the end of the call, but the call is not marked as settled. Recovery publishes
//   the events that are not known to be on the stream, which drops duplicates by id. When they are
//   published and the far end is out of the call, it marks the call in SQL. If that fails, the next
//   sweep finds the call again.
// - done: the call is marked as settled, and recovery has forgotten it.
//
// States of a far end, if its leg was stored. However often a hang-up is requested, only one
// sequence of attempts runs per call:
// - waiting: all places for concurrent hang-ups are in use. Left when a place is free, or when this
//   process stops.
// - hanging up: the engine is asked to end the leg. Left for `over` when the leg has ended or is
//   unknown. Left for `pausing` if the engine cannot be reached or if only a CANCEL was sent.
// - pausing: the leg waits without using a place. Left for `waiting` after the pause.
// - over: the leg has ended, or the wait for the engine or for a 200 OK that crossed the CANCEL
//   took too long. If the engine does not know the dialog, it may have restarted, or the lost
//   process may have ended the dialog without storing that. The far end gets a BYE in either case,
//   and answers it with 481 if it is already out of the call.
//
// `stop` leaves every call in its state. SQL holds what is owed, for the next process.

/** Ends the calls of lost processes, and settles ended calls of lost processes and of this one. */
export class Recovery {
  readonly #ports: RecoveryPorts;
  readonly #ownerId: string;
  readonly #stopped = new AbortController();
  /** Ended calls that are being settled. */
  readonly #owed = new Set<CallId>();
  /**
   * The hang-up of each call's legs. Resolves to true when all legs have ended. An entry stays
   * until its call is settled.
   */
  readonly #farEnds = new Map<CallId, Promise<boolean>>();
  readonly #turns = takeTurns(
    // The queue needs no separate bound: each waiting far end also has an entry in `#farEnds`.
    { running: maxHangUpsAtOnce, waiting: Number.POSITIVE_INFINITY },
    () => new Error('too many far ends'),
  );

  constructor(ports: RecoveryPorts, ownerId: string) {
    this.#ports = ports;
    this.#ownerId = ownerId;
    // Each leg that waits for its next try listens to this signal.
    setMaxListeners(unfinishedLimit, this.#stopped.signal);
  }

  /** Stops the work. The next process finishes the rest. */
  stop(): void {
    this.#stopped.abort();
  }

  /**
   * Ends all calls that were taken over from lost processes. Resolves when SQL has their ends. A
   * call that cannot be ended is logged and counted as failed. The far ends are hung up in the
   * background. `settleEnds` continues what is not done by then.
   */
  async endTakenOver(): Promise<{ readonly ended: number; readonly failed: number }> {
    const found = await this.#ports.ledger.unfinished(this.#ownerId, 'taken over', unfinishedLimit);
    const results: boolean[] = [];
    for (let start = 0; start < found.length; start += batchSize) {
      if (this.#stopped.signal.aborted) break;
      const batch = found.slice(start, start + batchSize);
      results.push(...(await Promise.all(batch.map((unfinished) => this.#tryToEnd(unfinished)))));
    }
    const ended = results.filter((isEnded) => isEnded).length;
    return { ended, failed: found.length - ended };
  }

  /**
   * Ends calls of this process that have no machine: the machine failed, or the answer to the take
   * was lost.
   */
  async endOwn(callIds: readonly CallId[]): Promise<void> {
    const { ledger, logger } = this.#ports;
    const found = await ledger.unfinished(this.#ownerId, { callIds }, unfinishedLimit);
    for (const unfinished of found) {
      const { call, legs } = unfinished;
      logger.warn({ callId: call.callId }, 'ending a call without a machine');
      await this.#tryToEnd(unfinished);
      // Not awaited, because a far end that does not answer takes seconds.
      const isEnding = this.#endFarEnds(call.callId, legs);
      const hungUp = isEnding.finally(() => this.#farEnds.delete(call.callId));
      inBackground(hungUp, logger, 'hanging up a far end');
    }
    if (found.length === 0) return;
    // Not awaited, because NATS may be unreachable.
    this.settleEnds().catch((error: unknown) =>
      logger.warn({ err: error }, 'ends of calls without a machine are still owed'),
    );
  }

  /**
   * Settles calls of this process that have ended: publishes their events, and hangs up the far
   * ends of calls that were taken over. The hang-ups continue in the background. Resolves when the
   * events that were found are published, or when `until` is aborted. While NATS is unreachable, it
   * waits.
   */
  async settleEnds(until?: AbortSignal): Promise<void> {
    // The next sweep retries these calls. Without this list, the loop would find them again
    // endlessly.
    const failed: CallId[] = [];
    for (;;) {
      const except = [...this.#owed, ...this.#ports.underWay(), ...failed];
      const found = await this.#ports.ledger.unsettledEnds(this.#ownerId, except, batchSize);
      // Skip calls whose events this process is still storing or publishing. Some ended during the
      // query.
      const batch = found.filter(({ call }) => !this.#ports.isUnderWay(call.callId));
      failed.push(...found.filter((end) => !batch.includes(end)).map(({ call }) => call.callId));
      const settle = async (end: UnsettledEnd): Promise<void> => {
        if (!(await this.#settle(end))) failed.push(end.call.callId);
      };
      const published = Promise.all(batch.map(settle));
      await within(published, this.#stopped.signal, ...(until === undefined ? [] : [until]));
      const isOver = this.#stopped.signal.aborted || until?.aborted === true;
      if (found.length === 0 && this.#owed.size === 0) this.#farEnds.clear();
      if (found.length < batchSize || isOver) return;
    }
  }

  /**
   * Settles one call. Resolves when its events are published, without waiting for a hang-up.
   * @returns false if they could not be published
   */
  async #settle({ call, events, legs }: UnsettledEnd): Promise<boolean> {
    const { publish, settle, logger } = this.#ports;
    const { callId } = call;
    this.#owed.add(callId);
    const published = publish(events);
    const finish = async (): Promise<boolean> => {
      const [isOver] = await Promise.all([this.#endFarEnds(callId, legs), published]);
      if (isOver) settle(callId);
      return true;
    };
    const finished = finish()
      .catch((error: unknown) => {
        logger.warn({ err: error, callId }, 'an ended call could not be settled');
        return false;
      })
      .finally(() => {
        this.#owed.delete(callId);
        this.#farEnds.delete(callId);
      });
    if (legs.length === 0) return await finished;
    return await published.then(
      () => true,
      () => false,
    );
  }

  /**
   * Hangs up the legs of a call, in only one sequence of attempts per call.
   * @returns false if this process stops before all legs are certainly over
   */
  #endFarEnds(callId: CallId, legs: readonly StoredLeg[]): Promise<boolean> {
    if (legs.length === 0) return Promise.resolve(true);
    const underWay = this.#farEnds.get(callId);
    if (underWay !== undefined) return underWay;
    const ending = Promise.all(legs.map((leg) => this.#keepHangingUp(callId, leg))).then(
      (results) => {
        const areOver = results.every((isOver) => isOver);
        if (areOver) this.#ports.legsAreOver(callId);
        return areOver;
      },
    );
    this.#farEnds.set(callId, ending);
    return ending;
  }

  async #keepHangingUp(callId: CallId, leg: StoredLeg): Promise<boolean> {
    const { logger } = this.#ports;
    let logged: LegEndResult | undefined;
    let lateAnswers = 0;
    for (let tries = 1; tries <= farEndTries && !this.#stopped.signal.aborted; tries += 1) {
      const farEnd = await this.#hangUpInTurn(callId, leg);
      // Log only changes, because an unreachable far end stays unreachable for a while.
      if (farEnd !== logged)
        logger.info({ callId, farEnd }, 'tried to hang up the far end of a call without a process');
      logged = farEnd;
      if (farEnd === 'cancelled') lateAnswers += 1;
      if (isOver(farEnd, lateAnswers)) return true;
      await this.#pause(farEnd === 'cancelled' ? lateAnswerPauseMs : farEndPauseMs);
    }
    return !this.#stopped.signal.aborted;
  }

  /** Hangs up when a place for concurrent hang-ups is free. A pausing leg uses no place. */
  async #hangUpInTurn(callId: CallId, leg: StoredLeg): Promise<LegEndResult> {
    return await this.#turns(async () =>
      this.#stopped.signal.aborted ? 'unreachable' : await this.#hangUp(callId, leg),
    );
  }

  /** Resolves after the time, or when this process stops. */
  async #pause(pauseMs: number): Promise<void> {
    await within(new Promise(() => undefined), pauseMs, this.#stopped.signal);
  }

  async #hangUp(callId: CallId, leg: StoredLeg): Promise<LegEndResult> {
    const { sip, logger } = this.#ports;
    try {
      return await sip.endOrphan(leg);
    } catch (error) {
      logger.error({ err: error, callId }, 'far end could not be hung up');
      return 'gone';
    }
  }

  /**
   * Ends one call.
   * @returns false if it could not be ended now
   */
  async #tryToEnd(unfinished: UnfinishedCall): Promise<boolean> {
    const { call, legs } = unfinished;
    // Hang up the far end even if the call's events cannot be read now. `settleEnds` checks the
    // result.
    this.#endFarEnds(call.callId, legs).catch(() => undefined);
    try {
      await this.#recordEnd(unfinished, await this.#ports.eventsOnStream(call));
      return true;
    } catch (error) {
      this.#ports.logger.error(
        { err: error, callId: call.callId },
        'a call without a process could not be ended',
      );
      return false;
    }
  }

  async #recordEnd(unfinished: UnfinishedCall, onStream: readonly CallEvent[]): Promise<void> {
    const { ends, outbox, clock } = this.#ports;
    // The last events that a lost process stored may not be on the stream. `settleEnds` publishes
    // them, in order.
    const isTakenOver = unfinished.ownerId !== this.#ownerId;
    const how = { isRecovered: isTakenOver || unfinished.legs.length > 0 };
    // The stream holds an end that SQL lacks only if SQL was restored from a backup. Receivers
    // already have that end, so store the same one: another end under its id would contradict it.
    const endOnStream = onStream.find(isEnd);
    if (endOnStream !== undefined) {
      const step = { events: [], ending: { event: endOnStream } };
      await outbox.append(unfinished.call, step, { ...how, isRepeated: true });
      return;
    }
    const now = clock.now();
    const loss = lossOf(unfinished.ownerId, this.#ownerId);
    const { progress, missing } = rebuild(unfinished, onStream, { now, loss });
    const end = (progress.answeredAt === undefined ? endOfUnknown : endOfLoss)(loss, now);
    await ends.record(progress, end, missing, how);
  }
}

function isEnd(event: CallEvent): event is TerminalEvent {
  return event.type === 'completed' || event.type === 'failed';
}

function isOver(farEnd: LegEndResult, lateAnswers: number): boolean {
  return farEnd === 'ended' || farEnd === 'gone' || lateAnswers === lateAnswerTries;
}

/** Returns how the lost owner was lost. An owner id names a node and one start of it. */
function lossOf(lost: string, own: string): GatewayLoss {
  if (lost === own) return 'failed';
  const nodeOf = (ownerId: string): string => ownerId.slice(0, ownerId.lastIndexOf('/'));
  return nodeOf(lost) === nodeOf(own) ? 'restarted' : 'lost';
}
