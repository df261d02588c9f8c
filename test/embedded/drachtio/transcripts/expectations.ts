// Gives every recorded message a label that is the same in every run, and stores which messages the
// engine has sent.

import { controlKey, controlLabel, sipLabel } from './comparing.ts';
import type { ControlEvent, Recording, WireEvent } from './recording.ts';

export type Expectation<Event> = {
  readonly event: Event;
  /**
   * `base`, with a number from the second message of its kind on, or with `again` for an identical
   * packet.
   */
  readonly label: string;
  readonly base: string;
  readonly repeatOf?: Expectation<Event>;
  matched: boolean;
};

export function expectControl(recording: Recording): Expectation<ControlEvent>[] {
  const counts = new Map<string, number>();
  return recording.control.map((event) => {
    const base = 'payload' in event ? controlLabel(event.payload) : event.kind;
    return { event, base, label: numbered(counts, event.kind, base), matched: false };
  });
}

export function expectWire(recording: Recording): Expectation<WireEvent>[] {
  const counts = new Map<string, number>();
  const firsts = new Map<string, Expectation<WireEvent>>();
  return recording.wire.map((event) => {
    const base = wireBase(event.text);
    const key = `${event.kind} ${event.peer} ${event.text}`;
    const repeatOf = firsts.get(key);
    if (repeatOf !== undefined) {
      return { event, base, label: `${repeatOf.label} again`, repeatOf, matched: false };
    }
    const label = numbered(counts, event.kind, base);
    const expectation = { event, base, label, matched: false };
    firsts.set(key, expectation);
    return expectation;
  });
}

export function wireBase(text: string): string {
  return `wire ${sipLabel(text)}`;
}

export function findControl(
  expectations: readonly Expectation<ControlEvent>[],
  connection: number,
  payload: string,
): (Expectation<ControlEvent> & { readonly event: { readonly payload: string } }) | undefined {
  const key = controlKey(payload);
  for (const expectation of expectations) {
    const { event, matched } = expectation;
    if (matched || event.kind !== 'fromEngine' || event.connection !== connection) continue;
    if (controlKey(event.payload) === key) return expectation as never;
  }
  return undefined;
}

function numbered(counts: Map<string, number>, kind: string, base: string): string {
  const count = (counts.get(`${kind} ${base}`) ?? 0) + 1;
  counts.set(`${kind} ${base}`, count);
  return count === 1 ? base : `${base}#${count}`;
}
