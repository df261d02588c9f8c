// A leg observer that records the leg's events in order.

import type { StoredLeg } from '../../src/calls/contract/stored-leg.ts';
import type { LegEvent, LegObserver } from '../../src/calls/ports.ts';
import { eventually } from './eventually.ts';

export class RecordingLeg implements LegObserver {
  readonly events: LegEvent[] = [];
  /** The leg as the last provisional response reported it. */
  ringingLeg: StoredLeg | undefined;
  /** The SDP to answer a re-offer with. Undefined rejects the re-offer. */
  reofferAnswer: string | undefined = 'v=0\r\ns=answer\r\n';

  /** The SDP to offer on request. Undefined rejects the request. */
  furtherOffer: string | undefined = 'v=0\r\ns=offer\r\n';
  acceptsLateAnswers = true;

  observe(event: LegEvent): void {
    this.events.push(event);
    if (event.kind === 'provisional') this.ringingLeg = event.leg;
    if (event.kind === 'reoffer' && this.reofferAnswer !== undefined)
      event.accept(this.reofferAnswer);
    if (event.kind === 'offerRequested' && this.furtherOffer !== undefined)
      event.offer(this.furtherOffer);
    if (event.kind === 'lateAnswer' && this.acceptsLateAnswers) event.accept();
  }

  kinds(): string[] {
    return this.events.map((event) =>
      event.kind === 'provisional' ? String(event.status) : event.kind,
    );
  }

  /** Waits for an event of this kind. See `eventually` for `withinMs`. */
  async until<Kind extends LegEvent['kind']>(
    kind: Kind,
    withinMs?: number,
  ): Promise<Extract<LegEvent, { kind: Kind }>> {
    const isWanted = (event: LegEvent): event is Extract<LegEvent, { kind: Kind }> =>
      event.kind === kind;
    await eventually(() => this.events.some(isWanted), `the leg reports ${kind}`, withinMs);
    const event = this.events.find(isWanted);
    if (event === undefined) throw new Error(`no ${kind}`);
    return event;
  }
}
