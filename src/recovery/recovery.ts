// What a lost process left: calls that it was dialling or had up, and ends that it had stored and not finished with. Each
// call gets its one terminal event, and the far end gets its BYE; none is dialled again.

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
  /** What the stream holds of a call, in order, where that may be more than SQL does. */
  readonly eventsOnStream: (call: AcceptedCall) => Promise<readonly CallEvent[]>;
  readonly sip: Pick<SipPort, 'endOrphan'>;
  /** Ended calls of this process that are done with in a while: they are on the wire, or their events are on their way. */
  readonly underWay: () => readonly CallId[];
  readonly isUnderWay: (callId: CallId) => boolean;
  readonly ends: Pick<EndRecorder, 'record'>;
  readonly outbox: CallOutbox;
  readonly publish: (events: readonly CallEvent[]) => Promise<void>;
  /** All is on the stream, and no far end is left in it. */
  readonly settle: (callId: CallId) => void;
  /** No far end is left in it, whatever else is owed. */
  readonly legsAreOver: (callId: CallId) => void;
  readonly clock: Clock;
  readonly logger: Logger;
};

/** Ended, or published again, at once. */
const batchSize = 50;
/** Above what one process has up, so that live calls cannot hide a lost one. */
const unfinishedLimit = 10_000;
/** Far ends that are hung up side by side: one that does not answer takes seconds, and there may be hundreds. */
const farEndsAtOnce = 100;
/** An engine that is unreachable is waited for; beyond this the far end has given up by itself (RFC 3261 knows nothing longer than 3 min). */
const farEndTries = 150;
const farEndPauseMs = 2_000;
/** After a CANCEL a 200 may still come: it is repeated for 32 s (RFC 3261, 13.3.1.4). Each try takes half a second itself. */
const lateAnswerTries = 32;
const lateAnswerPauseMs = 500;

// A call without a machine goes through:
//
// unfinished  SQL has no end of it, and it is this process's: taken over from a lost one, or named by this process. Its far end
//             begins to be hung up; its events are read and its end is stored. Left when SQL has the end; where that fails, it
//             is found again by the next sweep.
// owed        SQL has its end, and is not told that all is done. Events that are not known to be on the stream are published, and
//             dropped by id where they were. Left when they are published and the far end is over: then it is marked in SQL.
//             Where that fails, it is found again by the next sweep.
// done        Marked. Nothing here remembers it.
//
// Beside that, its far end, where a leg was stored, once for a call, however often asked:
//
// waiting     A hundred are being hung up. Left when one of them is through, or when this process stops.
// hanging up  The engine is asked to end it. Left for `over` when it has ended or is unknown, and for `pausing` when the
//             engine cannot be reached or only a CANCEL has left.
// pausing     It takes no other call's place meanwhile. Left for `waiting` after the pause.
// over        It has ended; or a 200 that crossed the CANCEL, or the engine, has been waited for long enough. The lost process may have
//             ended it before, and not stored that: an engine that does not know a dialog may have ended it, or have been
//             started again. It gets a BYE all the same, which a far end that is out of the call answers with 481.
//
// `stop` leaves every call in its state: what it owes is in SQL, for the next process.

/** Looks after what lost processes left, and what this one still owes. */
export class Recovery {
  readonly #ports: RecoveryPorts;
  readonly #ownerId: string;
  readonly #stopped = new AbortController();
  /** Ends that are being worked on here. */
  readonly #owed = new Set<CallId>();
  /** Legs that are being hung up here, and those that were, until their calls are done with. */
  readonly #farEnds = new Map<CallId, Promise<boolean>>();
  readonly #turns = takeTurns(
    // As many wait as there are far ends: each has its place in `#farEnds` in any case.
    { running: farEndsAtOnce, waiting: Number.POSITIVE_INFINITY },
    () => new Error('too many far ends'),
  );

  constructor(ports: RecoveryPorts, ownerId: string) {
    this.#ports = ports;
    this.#ownerId = ownerId;
    // Each leg that waits to be tried again listens.
    setMaxListeners(unfinishedLimit, this.#stopped.signal);
  }

  /** What is not done by then is left to the next process. */
  stop(): void {
    this.#stopped.abort();
  }

  /**
   * Ends every call that was taken over from lost processes. Resolves when all of them have their end in SQL; what cannot be
   * ended is logged and counted. The far ends are hung up beside that, and by `settleEnds` where that takes longer.
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
   * Ends calls of this very process that have no machine: one that failed, or that was taken without an answer.
   */
  async endOwn(callIds: readonly CallId[]): Promise<void> {
    const { ledger, logger } = this.#ports;
    const found = await ledger.unfinished(this.#ownerId, { callIds }, unfinishedLimit);
    for (const unfinished of found) {
      const { call, legs } = unfinished;
      logger.warn({ callId: call.callId }, 'ending a call without a machine');
      await this.#tryToEnd(unfinished);
      // Not waited for: a far end that does not answer takes its time.
      const isEnding = this.#endFarEnds(call.callId, legs);
      const forgotten = isEnding.finally(() => this.#farEnds.delete(call.callId));
      inBackground(forgotten, logger, 'hanging up a far end');
    }
    if (found.length === 0) return;
    // Not waited for: NATS may be away.
    this.settleEnds().catch((error: unknown) =>
      logger.warn({ err: error }, 'ends of calls without a machine are still owed'),
    );
  }

  /**
   * Calls of this process that have ended and are not done with: their events are published, and the far ends of those that were
   * taken over are hung up, which goes on in the background. Resolves when what was found is published, or at the signal: while
   * NATS is unreachable that waits for it.
   */
  async settleEnds(until?: AbortSignal): Promise<void> {
    // Left to the next sweep: what cannot be published now would be found again at once, and for ever.
    const failed: CallId[] = [];
    for (;;) {
      const except = [...this.#owed, ...this.#ports.underWay(), ...failed];
      const found = await this.#ports.ledger.unsettledEnds(this.#ownerId, except, batchSize);
      // Some may have been stored while they were looked for.
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

  /** Resolves when it is published; no hang-up waits for that. False: it could not be. */
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
        logger.warn({ err: error, callId }, 'an ended call could not be closed');
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

  /** False: this process stops before it is certain. One attempt for a call at a time. */
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
      // Not at each try: one that is unreachable stays unreachable for a while.
      if (farEnd !== logged) logger.info({ callId, farEnd }, 'far end of a lost process');
      logged = farEnd;
      if (farEnd === 'cancelled') lateAnswers += 1;
      if (isOver(farEnd, lateAnswers)) return true;
      await this.#pause(farEnd === 'cancelled' ? lateAnswerPauseMs : farEndPauseMs);
    }
    return !this.#stopped.signal.aborted;
  }

  /** What waits to be tried again takes no other's turn. */
  async #hangUpInTurn(callId: CallId, leg: StoredLeg): Promise<LegEndResult> {
    return await this.#turns(async () =>
      this.#stopped.signal.aborted ? 'unreachable' : await this.#hangUp(callId, leg),
    );
  }

  /** Ends with the time, or with this process. */
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

  /** False: it could not be ended now. */
  async #tryToEnd(unfinished: UnfinishedCall): Promise<boolean> {
    const { call, legs } = unfinished;
    // No far end is left in a call because its story cannot be read just now. `settleEnds` looks whether it worked.
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
    // What a lost process stored last may not be on the stream: `settleEnds` publishes all, in order.
    const isTakenOver = unfinished.ownerId !== this.#ownerId;
    const how = { isRecovered: isTakenOver || unfinished.legs.length > 0 };
    // Only where a backup of SQL was restored. Receivers have that end: another one under its id would contradict it.
    const stated = onStream.find(isEnd);
    if (stated !== undefined) {
      const step = { events: [], ending: { event: stated } };
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

/** An owner is a node, and one start of it. */
function lossOf(lost: string, own: string): GatewayLoss {
  if (lost === own) return 'failed';
  const nodeOf = (ownerId: string): string => ownerId.slice(0, ownerId.lastIndexOf('/'));
  return nodeOf(lost) === nodeOf(own) ? 'restarted' : 'lost';
}
