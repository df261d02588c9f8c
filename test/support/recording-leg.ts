// A leg's observer that writes down what it was told, in order.

import type { StoredLeg } from '../../src/calls/contract/stored-leg.ts';
import type { LegEvent, LegObserver } from '../../src/calls/ports.ts';
import { eventually } from './eventually.ts';

export class RecordingLeg implements LegObserver {
  readonly events: LegEvent[] = [];
  /** As the last 18x made it. */
  ringingLeg: StoredLeg | undefined;
  /** What a re-offer is answered; undefined refuses it. */
  reofferAnswer: string | undefined = 'v=0\r\ns=answer\r\n';

  observe(event: LegEvent): void {
    this.events.push(event);
    if (event.kind === 'provisional') this.ringingLeg = event.leg;
    if (event.kind === 'reoffer' && this.reofferAnswer !== undefined)
      event.accept(this.reofferAnswer);
  }

  kinds(): string[] {
    return this.events.map((event) =>
      event.kind === 'provisional' ? String(event.status) : event.kind,
    );
  }

  /** Waits for an event of this kind. */
  async until<Kind extends LegEvent['kind']>(
    kind: Kind,
  ): Promise<Extract<LegEvent, { kind: Kind }>> {
    const isWanted = (event: LegEvent): event is Extract<LegEvent, { kind: Kind }> =>
      event.kind === kind;
    await eventually(() => this.events.some(isWanted), `the leg's observer is told ${kind}`);
    const event = this.events.find(isWanted);
    if (event === undefined) throw new Error(`no ${kind}`);
    return event;
  }
}
