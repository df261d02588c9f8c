// A leg's observer that writes down what it was told, in order.

import type { StoredLeg } from '../../src/calls/contract/stored-leg.ts';
import type { LegEvent, LegObserver } from '../../src/calls/ports.ts';
import { eventually } from './eventually.ts';

export class RecordingLeg implements LegObserver {
  readonly facts: LegEvent[] = [];
  /** As the last 18x made it. */
  ringingLeg: StoredLeg | undefined;
  /** What a re-offer is answered; undefined refuses it. */
  reofferAnswer: string | undefined = 'v=0\r\ns=answer\r\n';

  observe(event: LegEvent): void {
    this.facts.push(event);
    if (event.kind === 'provisional') this.ringingLeg = event.leg;
    if (event.kind === 'reoffer' && this.reofferAnswer !== undefined)
      event.accept(this.reofferAnswer);
  }

  kinds(): string[] {
    return this.facts.map((fact) =>
      fact.kind === 'provisional' ? String(fact.status) : fact.kind,
    );
  }

  /** Waits for a fact of this kind. */
  async until<Kind extends LegEvent['kind']>(
    kind: Kind,
  ): Promise<Extract<LegEvent, { kind: Kind }>> {
    const isWanted = (fact: LegEvent): fact is Extract<LegEvent, { kind: Kind }> =>
      fact.kind === kind;
    await eventually(() => this.facts.some(isWanted), `the leg's observer is told ${kind}`);
    const fact = this.facts.find(isWanted);
    if (fact === undefined) throw new Error(`no ${kind}`);
    return fact;
  }
}
