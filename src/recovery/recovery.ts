// Finishes the work of lost processes. Recovery ends the calls that these processes were dialling
// or had connected, and publishes the stored events of calls that have already ended. Each call
// gets exactly one terminal event, and a BYE is sent to anyone who's still connected. We never dial
// a call again.

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
   * Returns the call's events on the stream, in order. The stream may contain events that the
   * database lacks.
   */
  readonly eventsOnStream: (call: AcceptedCall) => Promise<readonly CallEvent[]>;
  readonly sip: Pick<SipPort, 'endOrphan'>;
  /**
   * Returns the calls that this process is still handling, and that therefore don't need recovery.
   * Their legs are on the wire.
   */
  readonly underWay: () => readonly CallId[];
  /** Returns true while this process is storing or publishing the call's events. */
  readonly isUnderWay: (callId: CallId) => boolean;
  readonly ends: Pick<EndRecorder, 'record'>;
  readonly outbox: CallOutbox;
  readonly publish: (events: readonly CallEvent[]) => Promise<void>;
  /**
   * Marks the call as settled, which means that all its events have been published to the stream
   * and all its legs have ended.
   */
  readonly settle: (callId: CallId) => void;
  /**
   * Records that all of the call's legs have ended. Some of its events may still be unpublished.
   */
  readonly noteLegsGone: (callId: CallId) => void;
  readonly clock: Clock;
  readonly logger: Logger;
};

/** We end or settle this many calls concurrently. */
const batchSize = 50;
/** A single process can't have this many live calls, so its own calls can never hide a lost one. */
const unfinishedLimit = 10_000;
/**
 * Limits how many legs we hang up concurrently. If the other side doesn't respond, a hang-up takes
 * seconds, and there may be hundreds of them.
 */
const maxHangUpsAtOnce = 100;
/**
 * Limits how long we keep trying to reach an unreachable engine. By then, the other side has given
 * up on its own, because no timer in RFC 3261 is longer than 3 min.
 */
const farEndTries = 150;
const farEndPauseMs = 2_000;
/**
 * Limits how long we wait for a late 200 OK after a CANCEL. The callee retransmits its 200 for 32 s
 * (RFC 3261, 13.3.1.4). Note that each try takes half a second itself, in addition to the pause.
 */
const lateAnswerTries = 32;
const lateAnswerPauseMs = 500;

// States of a call that doesn't have a state machine:
// - unfinished: according to the database, the call hasn't ended and belongs to this process, which
//   has either taken it over from a lost process or asked for it by id. Recovery starts hanging up
//   the call's legs, reads the call's events, and stores the end. If the end can't be stored, the
//   call remains in this state until the next sweep finds it again.
// - owed: the end has been stored, but the call hasn't been marked as settled yet. Recovery
//   publishes the events that may be missing from the stream, which drops duplicates by id. Once
//   these events have been published and the legs have ended, recovery marks the call as settled in
//   the database. If that fails, the next sweep finds the call again.
// - done: the call has been marked as settled, and recovery has forgotten about it.
//
// States of a leg that was stored. No matter how often someone requests a hang-up, each call has
// only one sequence of attempts:
// - waiting: we've reached the maximum number of concurrent hang-ups. The leg waits until another
//   hang-up finishes, or this process stops.
// - hanging up: we've asked the engine to end the leg. The next state is `over` if the leg has
//   ended or the engine doesn't know it, and `pausing` if we can't reach the engine or have only
//   sent a CANCEL so far.
// - pausing: the leg doesn't count towards the maximum while it pauses. After that, it goes back to
//   `waiting`.
// - over: the leg has ended, or we've stopped waiting for the engine or for a 200 OK that crossed
//   the CANCEL. If the engine doesn't know the dialog, either the engine was restarted, or the lost
//   process ended the dialog but couldn't store that. In both cases we send a BYE, and if the other
//   side has already left the call, it responds with 481.
//
// `stop` leaves every call in its current state. The next process can finish the work from what's
// in the database.

/** The hang-up of a call's legs. */
type HangUp = {
  /** Resolves to true when all legs have ended. */
  readonly areOver: Promise<boolean>;
  isRunning: boolean;
};

/** Ends the calls of lost processes, and settles ended calls, including this process's own. */
export class Recovery {
  readonly #ports: RecoveryPorts;
  readonly #ownerId: string;
  readonly #stopped = new AbortController();
  /** Ended calls that we are currently settling. */
  readonly #owed = new Set<CallId>();
  /** Each call's hang-up. An entry remains while it is running, and until the call is settled. */
  readonly #farEnds = new Map<CallId, HangUp>();
  readonly #turns = takeTurns(
    // The queue doesn't need its own limit, because every waiting leg's call has an entry in
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

  /** Stops working. The next process will finish the rest. */
  stop(): void {
    this.#stopped.abort();
  }

  /**
   * Ends all calls that were taken over from lost processes, and resolves when the ends have been
   * stored. If a call can't be ended, we log that and count the call as failed. Legs are hung up in
   * the background. `settleEnds` takes care of any that are still up by then.
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
   * Ends this process's calls that don't have a state machine, either because it failed or because
   * the database's response was lost when we claimed the call.
   */
  async endOwn(callIds: readonly CallId[]): Promise<void> {
    const { ledger, logger } = this.#ports;
    const found = await ledger.unfinished(this.#ownerId, { callIds }, unfinishedLimit);
    for (const unfinished of found) {
      const { call, legs } = unfinished;
      logger.warn({ callId: call.callId }, 'ending a call without a machine');
      await this.#tryToEnd(unfinished);
      // We don't await this, because it takes seconds if the other side doesn't respond.
      const isEnding = this.#endFarEnds(call.callId, legs);
      const hungUp = isEnding.finally(() => this.#forgetFarEnds([call.callId]));
      inBackground(hungUp, logger, 'hanging up a far end');
    }
    if (found.length === 0) return;
    // This isn't awaited either, because NATS may be unreachable.
    this.settleEnds().catch((error: unknown) =>
      logger.warn({ err: error }, 'ends of calls without a machine are still owed'),
    );
  }

  /**
   * Settles this process's ended calls: publishes their events, and hangs up the remaining legs of
   * calls that were taken over. The hang-ups continue in the background. Resolves when the events
   * have been published, or when `until` is aborted. If NATS is unreachable, this method waits for
   * it.
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
      if (found.length === 0 && this.#owed.size === 0) this.#forgetFarEnds(this.#farEnds.keys());
      if (found.length < batchSize || isOver) return;
    }
  }

  /**
   * Settles one call. Resolves when its events have been published, without waiting for any
   * hang-up.
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
        this.#forgetFarEnds([callId]);
      });
    if (legs.length === 0) return await finished;
    return await published.then(
      () => true,
      () => false,
    );
  }

  /**
   * Hangs up a call's legs, or joins a hang-up that's already under way.
   * @returns false if this process stops before all legs are certainly over
   */
  #endFarEnds(callId: CallId, legs: readonly StoredLeg[]): Promise<boolean> {
    if (legs.length === 0) return Promise.resolve(true);
    const underWay = this.#farEnds.get(callId);
    if (underWay !== undefined) return underWay.areOver;
    const areOver = Promise.all(legs.map((leg) => this.#keepHangingUp(callId, leg))).then(
      (results) => {
        hangUp.isRunning = false;
        const haveEnded = results.every((hasEnded) => hasEnded);
        if (haveEnded) this.#ports.noteLegsGone(callId);
        return haveEnded;
      },
    );
    const hangUp: HangUp = { areOver, isRunning: true };
    this.#farEnds.set(callId, hangUp);
    return areOver;
  }

  /** Forgets the hang-ups of these calls, except those that are still running. */
  #forgetFarEnds(callIds: Iterable<CallId>): void {
    for (const callId of callIds) {
      if (this.#farEnds.get(callId)?.isRunning === false) this.#farEnds.delete(callId);
    }
  }

  async #keepHangingUp(callId: CallId, leg: StoredLeg): Promise<boolean> {
    const { logger } = this.#ports;
    let logged: LegEndResult | undefined;
    let lateAnswers = 0;
    for (let tries = 1; tries <= farEndTries && !this.#stopped.signal.aborted; tries += 1) {
      const farEnd = await this.#hangUpInTurn(callId, leg);
      // Only log changes, because a leg usually remains unreachable for a while.
      if (farEnd !== logged)
        logger.info({ callId, farEnd }, 'tried to hang up the far end of a call without a process');
      logged = farEnd;
      if (farEnd === 'cancelled') lateAnswers += 1;
      if (isOver(farEnd, lateAnswers)) return true;
      await this.#pause(farEnd === 'cancelled' ? lateAnswerPauseMs : farEndPauseMs);
    }
    return !this.#stopped.signal.aborted;
  }

  /** Hangs up the leg as soon as fewer than `maxHangUpsAtOnce` hang-ups are running. */
  async #hangUpInTurn(callId: CallId, leg: StoredLeg): Promise<LegEndResult> {
    return await this.#turns(async () =>
      this.#stopped.signal.aborted ? 'unreachable' : await this.#hangUp(callId, leg),
    );
  }

  /** Resolves after `pauseMs`, or earlier if this process stops. */
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
    // Hang up even if we can't read the call's events right now. `settleEnds` checks the result.
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
    // The last events that a lost process stored may not have made it onto the stream. `settleEnds`
    // publishes them in order.
    const isTakenOver = unfinished.ownerId !== this.#ownerId;
    const how = { isRecovered: isTakenOver || unfinished.legs.length > 0 };
    // If the stream contains an end that the database lacks, the database has been restored from a
    // backup. Receivers already have that end, so we store it again. A different end with the same
    // id would contradict what they know.
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

/** Returns how the owner was lost. An owner id identifies a node and one of its runs. */
function lossOf(lost: string, own: string): GatewayLoss {
  if (lost === own) return 'failed';
  const nodeOf = (ownerId: string): string => ownerId.slice(0, ownerId.lastIndexOf('/'));
  return nodeOf(lost) === nodeOf(own) ? 'restarted' : 'lost';
}
