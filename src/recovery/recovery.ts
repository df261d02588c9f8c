// Finishes what a lost process left: calls that it was dialling or had up, and ends that it had
// stored but not settled. Each call gets its one terminal event, and the far end gets its BYE. No
// call is dialled again.

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
  /** Returns the calls of this process whose legs are still on the wire. They need no recovery. */
  readonly underWay: () => readonly CallId[];
  /** Returns true if events of the call are still being stored or published by this process. */
  readonly isUnderWay: (callId: CallId) => boolean;
  readonly ends: Pick<EndRecorder, 'record'>;
  readonly outbox: CallOutbox;
  readonly publish: (events: readonly CallEvent[]) => Promise<void>;
  /** Marks the call as settled: all its events are on the stream, and no far end is left in it. */
  readonly settle: (callId: CallId) => void;
  /** Notes that no far end is left in the call. Its events may still be owed. */
  readonly legsAreOver: (callId: CallId) => void;
  readonly clock: Clock;
  readonly logger: Logger;
};

/** Number of calls that are ended, or of ends whose events are published, at once. */
const batchSize = 50;
/**
 * Higher than the number of calls that one process has up, so that live calls cannot hide a lost
 * one.
 */
const unfinishedLimit = 10_000;
/**
 * Largest number of far ends that are hung up at once. A far end that does not answer takes
 * seconds, and there may be hundreds of them.
 */
const maxHangUpsAtOnce = 100;
/**
 * Bounds the wait for an unreachable engine. After that the far end has given up by itself (RFC
 * 3261 has no timer longer than 3 min).
 */
const farEndTries = 150;
const farEndPauseMs = 2_000;
/**
 * Bounds the wait for a late 200 after a CANCEL. The callee repeats it for 32 s (RFC 3261,
 * 13.3.1.4). Each try itself takes half a second.
 */
const lateAnswerTries = 32;
const lateAnswerPauseMs = 500;

// States of a call without a machine:
// - unfinished: SQL has no end of the call and assigns it to this process. The call was taken over
//   from a lost process, or this process asked for it by id. Its far end begins to be hung up, its
//   events are read, and its end is stored. Left when SQL has the end. If that fails, the next
//   sweep finds the call again.
// - owed: SQL has the end of the call, but does not have it marked as settled. Events that are not
//   known to be on the stream are published; the stream drops by id those that it already has. When
//   they are published and the far end is over, the call is marked in SQL. If that fails, the next
//   sweep finds the call again.
// - done: the call is marked. Nothing here remembers it.
//
// States of its far end, if a leg was stored. Each call is hung up by one such sequence, however
// often that is requested:
// - waiting: a hundred far ends are being hung up. Left when one of them is through, or when this
//   process stops.
// - hanging up: the engine is asked to end the leg. Left for `over` when the leg has ended or is
//   unknown. Left for `pausing` if the engine cannot be reached or only a CANCEL has left.
// - pausing: the leg occupies none of the hundred places meanwhile. Left for `waiting` after the
//   pause.
// - over: the leg has ended, or the wait for the engine, or for a 200 that crossed the CANCEL, took
//   too long. An engine that does not know a dialog may have restarted. Or the lost process ended
//   the dialog without storing that. The far end gets a BYE in any case. A far end that is out of
//   the call answers it with 481.
//
// `stop` leaves every call in its state: SQL holds what it owes, for the next process.

/** Finishes what lost processes left, and what this process still owes. */
export class Recovery {
  readonly #ports: RecoveryPorts;
  readonly #ownerId: string;
  readonly #stopped = new AbortController();
  /** Ended calls whose settling is under way here. */
  readonly #owed = new Set<CallId>();
  /**
   * Hang-up of each call's legs: true when all are over. An entry stays until its call is settled.
   */
  readonly #farEnds = new Map<CallId, Promise<boolean>>();
  readonly #turns = takeTurns(
    // The queue needs no bound of its own: each far end that waits also has an entry in `#farEnds`.
    { running: maxHangUpsAtOnce, waiting: Number.POSITIVE_INFINITY },
    () => new Error('too many far ends'),
  );

  constructor(ports: RecoveryPorts, ownerId: string) {
    this.#ports = ports;
    this.#ownerId = ownerId;
    // Each leg that waits for its next try listens to this signal.
    setMaxListeners(unfinishedLimit, this.#stopped.signal);
  }

  /** Stops the work. The next process continues what is not done by then. */
  stop(): void {
    this.#stopped.abort();
  }

  /**
   * Ends every call that was taken over from lost processes. Resolves when SQL has all their ends.
   * A call that cannot be ended is logged and counted as failed. The far ends are hung up in the
   * background, and by `settleEnds` if that takes longer.
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
      // Not awaited: a far end that does not answer takes its time.
      const isEnding = this.#endFarEnds(call.callId, legs);
      const hungUp = isEnding.finally(() => this.#farEnds.delete(call.callId));
      inBackground(hungUp, logger, 'hanging up a far end');
    }
    if (found.length === 0) return;
    // Not awaited: NATS may be unreachable.
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
    // The next sweep retries these. Otherwise this loop would find them again at once, without end.
    const failed: CallId[] = [];
    for (;;) {
      const except = [...this.#owed, ...this.#ports.underWay(), ...failed];
      const found = await this.#ports.ledger.unsettledEnds(this.#ownerId, except, batchSize);
      // Leaves out calls whose own events are still under way. Some ended while the query ran.
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
   * Hangs up the legs of a call, with one attempt for a call at a time.
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
      // Logged only if the result changes: an unreachable far end stays unreachable for a while.
      if (farEnd !== logged) logger.info({ callId, farEnd }, 'far end of a call without a process');
      logged = farEnd;
      if (farEnd === 'cancelled') lateAnswers += 1;
      if (isOver(farEnd, lateAnswers)) return true;
      await this.#pause(farEnd === 'cancelled' ? lateAnswerPauseMs : farEndPauseMs);
    }
    return !this.#stopped.signal.aborted;
  }

  /** Hangs up when a place is free. A leg that pauses before its next try takes no place. */
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
    // The far end is hung up even if the events of the call cannot be read now. `settleEnds` checks
    // the result.
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
    // What a lost process stored last may not be on the stream. `settleEnds` publishes all of it,
    // in order.
    const isTakenOver = unfinished.ownerId !== this.#ownerId;
    const how = { isRecovered: isTakenOver || unfinished.legs.length > 0 };
    // The stream has an end that SQL lacks only if SQL was restored from a backup. Receivers have
    // that end, and another end under its id would contradict it.
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

/** Compares two owners. An owner is a node and one start of it. */
function lossOf(lost: string, own: string): GatewayLoss {
  if (lost === own) return 'failed';
  const nodeOf = (ownerId: string): string => ownerId.slice(0, ownerId.lastIndexOf('/'));
  return nodeOf(lost) === nodeOf(own) ? 'restarted' : 'lost';
}
