// Finishes the work of lost processes. It ends the calls that they were dialling or had up, and
// settles the ends that they stored. Each call gets exactly one terminal event, and its far end
// gets a BYE. We never dial a call again.

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
   * Returns the call's events on the stream, in order. The stream may contain more events than SQL.
   */
  readonly eventsOnStream: (call: AcceptedCall) => Promise<readonly CallEvent[]>;
  readonly sip: Pick<SipPort, 'endOrphan'>;
  /**
   * Returns the calls that don't need recovery, because their legs are on the wire and this process
   * is still handling them.
   */
  readonly underWay: () => readonly CallId[];
  /** Returns true if this process is still storing or publishing events of the call. */
  readonly isUnderWay: (callId: CallId) => boolean;
  readonly ends: Pick<EndRecorder, 'record'>;
  readonly outbox: CallOutbox;
  readonly publish: (events: readonly CallEvent[]) => Promise<void>;
  /**
   * Marks the call as settled, because all its events are on the stream and every far end has left
   * it.
   */
  readonly settle: (callId: CallId) => void;
  /** Records that every far end has left the call. Some of its events may still be unpublished. */
  readonly noteLegsGone: (callId: CallId) => void;
  readonly clock: Clock;
  readonly logger: Logger;
};

/** Number of calls that we end or settle concurrently. */
const batchSize = 50;
/** More than the live calls that a single process can have, so they can't hide a lost call. */
const unfinishedLimit = 10_000;
/**
 * Maximum number of concurrent hang-ups. If far ends don't respond, each hang-up takes seconds, and
 * there may be hundreds of them.
 */
const maxHangUpsAtOnce = 100;
/**
 * Limits how long we wait for an unreachable engine. By then, the far end has given up on its own,
 * because no timer in RFC 3261 is longer than 3 min.
 */
const farEndTries = 150;
const farEndPauseMs = 2_000;
/**
 * Limits how long we wait for a late 200 OK after a CANCEL. The callee retransmits its 200 for 32 s
 * (RFC 3261, 13.3.1.4). Note that each try takes half a second itself, in addition to the pause.
 */
const lateAnswerTries = 32;
const lateAnswerPauseMs = 500;

// States of a call without a machine:
// - unfinished: SQL has no end for the call and assigns the call to this process, which either took
//   it over from a lost process or asked for it by id. Recovery starts to hang up the far end,
//   reads the call's events, and stores its end. The state lasts until SQL has the end. If that
//   fails, the next sweep finds the call again.
// - owed: SQL has the call's end, but the call isn't marked as settled. Recovery publishes the
//   events that may be missing on the stream, which drops duplicates by id. Once these events are
//   published and the far end has left the call, it marks the call as settled in SQL. If that
//   fails, the next sweep finds the call again.
// - done: the call is marked as settled, and recovery has forgotten about it.
//
// States of a far end, provided that its leg was stored. No matter how often someone requests a
// hang-up, each call has only one sequence of attempts:
// - waiting: all places for concurrent hang-ups are in use. The state lasts until a place becomes
//   free, or this process stops.
// - hanging up: we've asked the engine to end the leg. The next state is `over` if the leg has
//   ended or the engine doesn't know it, and `pausing` if we can't reach the engine or have only
//   sent a CANCEL.
// - pausing: the leg waits without using a place. After the pause, it goes back to `waiting`.
// - over: the leg has ended, or we've stopped waiting for the engine or for a 200 OK that crossed
//   the CANCEL. If the engine doesn't know the dialog, either the engine was restarted, or the lost
//   process ended the dialog but couldn't store that. We send the far end a BYE in both cases. If
//   it has already left the call, it responds with 481.
//
// `stop` leaves every call in its current state. SQL has everything that the next process needs to
// finish the work.

/** Ends the calls of lost processes, and settles ended calls, including this process's own. */
export class Recovery {
  readonly #ports: RecoveryPorts;
  readonly #ownerId: string;
  readonly #stopped = new AbortController();
  /** Ended calls that we are settling at the moment. */
  readonly #owed = new Set<CallId>();
  /**
   * The hang-up of each call's legs. The promise resolves to true when all legs have ended. Entries
   * stay until their call is settled.
   */
  readonly #farEnds = new Map<CallId, Promise<boolean>>();
  readonly #turns = takeTurns(
    // The queue doesn't need its own limit, because each waiting far end also has an entry in
    // `#farEnds`.
    { running: maxHangUpsAtOnce, waiting: Number.POSITIVE_INFINITY },
    () => new Error('too many far ends'),
  );

  constructor(ports: RecoveryPorts, ownerId: string) {
    this.#ports = ports;
    this.#ownerId = ownerId;
    // Every leg that is waiting for its next try listens to this signal.
    setMaxListeners(unfinishedLimit, this.#stopped.signal);
  }

  /** Stops the work. The next process finishes the rest. */
  stop(): void {
    this.#stopped.abort();
  }

  /**
   * Ends all calls that were taken over from lost processes. Resolves when SQL has their ends. If a
   * call can't be ended, we log it and count it as failed. The far ends are hung up in the
   * background, and `settleEnds` takes care of anything that isn't done by then.
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
   * Ends this process's calls that have no machine, either because the machine failed or because
   * the answer to a take was lost.
   */
  async endOwn(callIds: readonly CallId[]): Promise<void> {
    const { ledger, logger } = this.#ports;
    const found = await ledger.unfinished(this.#ownerId, { callIds }, unfinishedLimit);
    for (const unfinished of found) {
      const { call, legs } = unfinished;
      logger.warn({ callId: call.callId }, 'ending a call without a machine');
      await this.#tryToEnd(unfinished);
      // We don't await this, because it takes seconds if the far end doesn't respond.
      const isEnding = this.#endFarEnds(call.callId, legs);
      const hungUp = isEnding.finally(() => this.#farEnds.delete(call.callId));
      inBackground(hungUp, logger, 'hanging up a far end');
    }
    if (found.length === 0) return;
    // We don't await this either, because NATS may be unreachable.
    this.settleEnds().catch((error: unknown) =>
      logger.warn({ err: error }, 'ends of calls without a machine are still owed'),
    );
  }

  /**
   * Settles this process's ended calls. Publishes their events, and hangs up the far ends of calls
   * that were taken over. The hang-ups continue in the background. Resolves when the events are
   * published, or when `until` is aborted. While NATS is unreachable, this method waits.
   */
  async settleEnds(until?: AbortSignal): Promise<void> {
    // The next sweep retries these calls. Without this list, the loop would keep finding them
    // forever.
    const failed: CallId[] = [];
    for (;;) {
      const except = [...this.#owed, ...this.#ports.underWay(), ...failed];
      const found = await this.#ports.ledger.unsettledEnds(this.#ownerId, except, batchSize);
      // Skip calls whose events we are still storing or publishing. Some of them ended during the
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
   * Settles one call. Resolves when its events are published, and doesn't wait for a hang-up.
   * @returns false if the events couldn't be published
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
   * Hangs up a call's legs. If that's already under way, joins it.
   * @returns false if this process stops before all legs are certainly over
   */
  #endFarEnds(callId: CallId, legs: readonly StoredLeg[]): Promise<boolean> {
    if (legs.length === 0) return Promise.resolve(true);
    const underWay = this.#farEnds.get(callId);
    if (underWay !== undefined) return underWay;
    const ending = Promise.all(legs.map((leg) => this.#keepHangingUp(callId, leg))).then(
      (results) => {
        const areOver = results.every((isOver) => isOver);
        if (areOver) this.#ports.noteLegsGone(callId);
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
      // Only log changes, because an unreachable far end usually stays unreachable for a while.
      if (farEnd !== logged)
        logger.info({ callId, farEnd }, 'tried to hang up the far end of a call without a process');
      logged = farEnd;
      if (farEnd === 'cancelled') lateAnswers += 1;
      if (isOver(farEnd, lateAnswers)) return true;
      await this.#pause(farEnd === 'cancelled' ? lateAnswerPauseMs : farEndPauseMs);
    }
    return !this.#stopped.signal.aborted;
  }

  /** Hangs up once a place for concurrent hang-ups is free. Pausing legs don't use a place. */
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
   * @returns false if we can't end it now
   */
  async #tryToEnd(unfinished: UnfinishedCall): Promise<boolean> {
    const { call, legs } = unfinished;
    // Hang up the far end even if we can't read the call's events right now. `settleEnds` checks
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
    // If a lost process stored its last events, they may not have made it onto the stream.
    // `settleEnds` publishes them, in order.
    const isTakenOver = unfinished.ownerId !== this.#ownerId;
    const how = { isRecovered: isTakenOver || unfinished.legs.length > 0 };
    // If the stream has an end that SQL lacks, SQL has been restored from a backup. Receivers
    // already have that end, so we store the same one. A different end with the same id would
    // contradict it.
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

/** Returns how the owner was lost. An owner id identifies a node and one of its starts. */
function lossOf(lost: string, own: string): GatewayLoss {
  if (lost === own) return 'failed';
  const nodeOf = (ownerId: string): string => ownerId.slice(0, ownerId.lastIndexOf('/'));
  return nodeOf(lost) === nodeOf(own) ? 'restarted' : 'lost';
}
