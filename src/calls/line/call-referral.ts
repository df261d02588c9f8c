// A referral of one call: the far end of its first leg is asked to call an agent (RFC 3515), and what it says of that is
// followed. When it has them, or hangs up after it took the request, the call is over here.

import type { AcceptedCall } from '../call-types.ts';
import type { CallLeg, MediaSession, ReferEvent } from '../ports.ts';
import type { Transfer } from '../transfer.ts';
import type { TransferReport } from '../transfer-report.ts';
import type { OngoingTransfer, TransferPorts } from './transfer-ports.ts';

export class CallReferral implements OngoingTransfer {
  readonly #call: AcceptedCall;
  readonly #transfer: Transfer;
  readonly #leg: CallLeg;
  readonly #session: MediaSession;
  readonly #ports: TransferPorts;
  readonly #tell: (report: TransferReport) => void;
  #isTaken = false;
  #isOver = false;

  constructor(
    call: AcceptedCall,
    transfer: Transfer,
    { leg, session }: { readonly leg: CallLeg; readonly session: MediaSession },
    ports: TransferPorts,
    tell: (report: TransferReport) => void,
  ) {
    this.#call = call;
    this.#transfer = transfer;
    this.#leg = leg;
    this.#session = session;
    this.#ports = ports;
    this.#tell = tell;
  }

  start(): void {
    if (!this.#transfer.keepStream) this.#session.gateStream(true);
    void this.#ask();
  }

  async #ask(): Promise<void> {
    const { to: target, headers, timeoutMs } = this.#transfer;
    const { trunk } = this.#call.request;
    const admitted = await this.#ports.admission.admit(
      this.#call,
      this.#transfer,
      () => !this.#isOver,
    );
    if (this.#isOver) return;
    if (!admitted.ok) {
      const at = this.#ports.clock.now();
      this.#fail({ kind: 'failed', failure: { kind: 'refused', at, reason: admitted.reason } });
      return;
    }
    this.#leg.refer(
      {
        ...{ target, timeoutMs },
        ...(trunk === undefined ? {} : { trunk }),
        ...(headers === undefined ? {} : { headers }),
      },
      (event) => this.#observe(event),
    );
  }

  /** Carriers that take a REFER often say so with a BYE and nothing else: true, and the machine was told. */
  endsBySuccess(): boolean {
    if (this.#isOver || !this.#isTaken) return false;
    this.#succeed({ hasHungUp: true });
    return true;
  }

  giveUp(): void {
    this.#isOver = true;
  }

  #observe(event: ReferEvent): void {
    if (this.#isOver) return;
    const at = this.#ports.clock.now();
    switch (event.kind) {
      case 'progress':
        this.#isTaken = true;
        // 202 is the REFER's own, 100 the next hop's.
        if (event.sipStatus >= 180 && event.sipStatus < 200) {
          this.#tell({ kind: 'ringing', sipStatus: event.sipStatus, earlyMedia: false });
        }
        break;
      case 'taken over':
        this.#succeed({ hasHungUp: false });
        break;
      case 'failed':
        this.#fail({ kind: 'failed', failure: { kind: 'leg', failure: event.failure } });
        break;
      case 'unheard':
        this.#fail({ kind: 'failed', failure: { kind: 'unheard', at, reason: event.reason } });
        break;
    }
  }

  #succeed(how: { readonly hasHungUp: boolean }): void {
    this.#isOver = true;
    this.#tell({ kind: 'referred', at: this.#ports.clock.now(), ...how });
  }

  #fail(report: TransferReport): void {
    this.#isOver = true;
    this.#session.gateStream(false);
    this.#tell(report);
  }
}
