// The outbox of a process that is going to die. Like the real one, it holds at most one waiting
// step and one step under way. The test decides when and how SQL handles a step, and which events
// make it to the stream.

import type { AcceptedCall } from '../../src/calls/call-types.ts';
import type { CallEvent } from '../../src/calls/contract/call-event.ts';
import { queuedEvent } from '../../src/calls/life/call-events.ts';
import { type CallStep, fold } from '../../src/calls/life/call-step.ts';
import type { CallOutbox, StepResult } from '../../src/calls/ports.ts';
import type { DialoutWorld } from './dialout-world.ts';

export const mortalOwner = 'node-1/old';

type Entry = { readonly step: CallStep; readonly resolve: (result: StepResult) => void };

export class MortalOutbox implements CallOutbox {
  readonly #world: DialoutWorld;
  readonly #call: AcceptedCall;
  #waiting: Entry | undefined;
  #underWay: Entry | undefined;
  #result: { readonly events: readonly CallEvent[] | undefined } | undefined;
  /** Events that are stored but not yet on the stream. */
  readonly #unpublished: CallEvent[];
  #publishedThrough = 0;

  constructor(world: DialoutWorld, call: AcceptedCall) {
    this.#world = world;
    this.#call = call;
    this.#unpublished = [queuedEvent(call)];
  }

  append(_call: AcceptedCall, step: CallStep): Promise<StepResult> {
    return new Promise((resolve) => {
      this.#waiting = merged(this.#waiting, { step, resolve });
    });
  }

  /** Whether the state machine of the call waits for an answer to be stored. */
  holdsAnswer(): boolean {
    return [this.#waiting, this.#underWay].some((entry) => entry?.step.answeredAt !== undefined);
  }

  /** Sends the waiting step to SQL, unless a step is under way. */
  begin(): void {
    if (this.#underWay !== undefined) return;
    this.#underWay = this.#waiting;
    this.#waiting = undefined;
  }

  commit(): void {
    if (this.#underWay === undefined || this.#result !== undefined) return;
    const how = { publishedThrough: this.#publishedThrough };
    const events = this.#world.append(mortalOwner, this.#call, this.#underWay.step, how);
    this.#result = { events };
  }

  /** Reports SQL's result to the process. */
  confirm(): void {
    if (this.#underWay === undefined || this.#result === undefined) return;
    const { events } = this.#result;
    this.#unpublished.push(...(events ?? []));
    this.#underWay.resolve(events === undefined ? 'not owned' : 'stored');
    this.#underWay = undefined;
    this.#result = undefined;
  }

  /**
   * Breaks the connection, either before or after SQL runs the statement. The outbox merges the
   * step with any that have arrived in the meantime, then retries.
   */
  fail(): void {
    if (this.#underWay === undefined) return;
    this.#waiting = merged(this.#underWay, this.#waiting);
    this.#underWay = undefined;
    this.#result = undefined;
  }

  /**
   * Puts up to `count` more events on the stream. The acknowledgement of the last event may be
   * lost.
   */
  publish(count: number, isLastConfirmed: boolean): void {
    const events = this.#unpublished.splice(0, count);
    this.#world.put(...events);
    const confirmed = isLastConfirmed ? events.at(-1) : events.at(-2);
    this.#publishedThrough = confirmed?.eventSequence ?? this.#publishedThrough;
  }
}

function merged(earlier: Entry | undefined, later: Entry | undefined): Entry | undefined {
  if (earlier === undefined || later === undefined) return earlier ?? later;
  const resolve = (result: StepResult): void => {
    earlier.resolve(result);
    later.resolve(result);
  };
  return { step: fold(earlier.step, later.step), resolve };
}
