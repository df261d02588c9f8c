// A leg's observer that writes down what it was told, in order.

import type { FailedAttempt } from '../../src/calls/contract/call-event.ts';
import type { StoredLeg } from '../../src/calls/contract/stored-leg.ts';
import type { LegEnd, LegFailure, LegObserver } from '../../src/calls/ports.ts';
import { eventually } from './eventually.ts';

export type LegFact =
  | { readonly kind: 'sent'; readonly gateway: string; readonly leg: StoredLeg }
  | { readonly kind: 'resent'; readonly leg: StoredLeg }
  | { readonly kind: 'attemptFailed'; readonly attempt: FailedAttempt }
  | { readonly kind: 'provisional'; readonly status: number; readonly sdp?: string }
  | { readonly kind: 'answered'; readonly sdp: string; readonly leg: StoredLeg }
  | { readonly kind: 'failed'; readonly failure: LegFailure }
  | { readonly kind: 'ended'; readonly end: LegEnd }
  | { readonly kind: 'reoffer'; readonly sdp: string }
  | { readonly kind: 'dtmf'; readonly digit: string; readonly durationMs: number | undefined };

export class RecordingLeg implements LegObserver {
  readonly facts: LegFact[] = [];
  /** As the last 18x made it. */
  ringingLeg: StoredLeg | undefined;
  /** What a re-offer is answered; undefined refuses it. */
  reofferAnswer: string | undefined = 'v=0\r\ns=answer\r\n';

  onSent(sent: { gateway: string; leg: StoredLeg }): void {
    this.facts.push({ kind: 'sent', gateway: sent.gateway, leg: sent.leg });
  }
  onResent(leg: StoredLeg): void {
    this.facts.push({ kind: 'resent', leg });
  }
  onAttemptFailed(attempt: FailedAttempt): void {
    this.facts.push({ kind: 'attemptFailed', attempt });
  }
  onProvisional(response: { status: number; sdp?: string; leg?: StoredLeg }): void {
    const { status, sdp, leg } = response;
    this.ringingLeg = leg;
    this.facts.push({ kind: 'provisional', status, ...(sdp !== undefined && { sdp }) });
  }
  onAnswered(answer: { sdp: string; leg: StoredLeg }): void {
    this.facts.push({ kind: 'answered', sdp: answer.sdp, leg: answer.leg });
  }
  onFailed(failure: LegFailure): void {
    this.facts.push({ kind: 'failed', failure });
  }
  onEnded(end: LegEnd): void {
    this.facts.push({ kind: 'ended', end });
  }
  onReoffer(sdp: string): string | undefined {
    this.facts.push({ kind: 'reoffer', sdp });
    return this.reofferAnswer;
  }
  onDtmf(digit: string, durationMs: number | undefined): void {
    this.facts.push({ kind: 'dtmf', digit, durationMs });
  }

  kinds(): string[] {
    return this.facts.map((fact) =>
      fact.kind === 'provisional' ? String(fact.status) : fact.kind,
    );
  }

  /** Waits for a fact of this kind. */
  async until<Kind extends LegFact['kind']>(kind: Kind): Promise<Extract<LegFact, { kind: Kind }>> {
    const isWanted = (fact: LegFact): fact is Extract<LegFact, { kind: Kind }> =>
      fact.kind === kind;
    await eventually(() => this.facts.some(isWanted), `the leg's observer is told ${kind}`);
    const fact = this.facts.find(isWanted);
    if (fact === undefined) throw new Error(`no ${kind}`);
    return fact;
  }
}
