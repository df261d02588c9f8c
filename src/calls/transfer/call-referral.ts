// A call's referral. It asks the far end of the first leg to call an agent (RFC 3515) and follows
// the progress that the far end reports. Our call ends when the far end has connected the agent, or
// when it hangs up after accepting the REFER. A single time-out covers the admission (which needs
// the database), the REFER and its NOTIFYs. That also limits how long the bot hears silence.
// `src/sip/legs/referral.ts` sends the REFER.

import type { AcceptedCall } from '../call-types.ts';
import type { MediaSession } from '../media.ts';
import type { CallLeg, ReferEvent, SecondLegPort } from '../ports.ts';
import type { Transfer } from './transfer.ts';
import {
  endOfAdmission,
  type OngoingTransfer,
  type TransferEnd,
  type TransferPorts,
  type TransferReport,
} from './transfer-report.ts';

type ReferralPorts = Pick<TransferPorts, 'clock'> & {
  readonly admission: Pick<SecondLegPort, 'admit'>;
};

type ReferredLine = {
  readonly leg: CallLeg;
  readonly session: Pick<MediaSession, 'send'>;
};

export class CallReferral implements OngoingTransfer {
  readonly #call: AcceptedCall;
  readonly #transfer: Transfer;
  readonly #leg: CallLeg;
  readonly #session: Pick<MediaSession, 'send'>;
  readonly #ports: ReferralPorts;
  readonly #report: (report: TransferReport) => void;
  /**
   * waiting: not admitted yet. asked: the leg is sending the REFER, bounded by the remaining time.
   * taken: the far end has accepted the REFER and is reporting progress. over: the end has been
   * reported, or the transfer has been given up. A REFER that hasn't been sent by then never will
   * be.
   */
  #state: 'waiting' | 'asked' | 'taken' | 'over' = 'waiting';
  readonly #startedMs = performance.now();
  readonly #timer: NodeJS.Timeout;

  constructor(
    call: AcceptedCall,
    transfer: Transfer,
    { leg, session }: ReferredLine,
    ports: ReferralPorts,
    report: (report: TransferReport) => void,
  ) {
    this.#call = call;
    this.#transfer = transfer;
    this.#leg = leg;
    this.#session = session;
    this.#ports = ports;
    this.#report = report;
    this.#timer = setTimeout(() => this.#failHere('No permission in time'), transfer.timeoutMs);
  }

  start(): void {
    if (!this.#transfer.keepStream) this.#session.send({ kind: 'gateStream', isGated: true });
    this.#ask().catch((error: unknown) => {
      this.#failHere(`Not asked: ${error instanceof Error ? error.message : 'unknown error'}`);
    });
  }

  async #ask(): Promise<void> {
    const isWanted = (): boolean => this.#state === 'waiting';
    const admitted = await this.#ports.admission.admit(this.#call, this.#transfer, isWanted);
    if (!isWanted()) return;
    if (admitted.ok) this.#refer();
    else {
      const at = this.#ports.clock.now();
      this.#fail(endOfAdmission(admitted, at));
    }
  }

  #refer(): void {
    const { to: target, headers, timeoutMs } = this.#transfer;
    const { trunk } = this.#call.request;
    clearTimeout(this.#timer);
    this.#state = 'asked';
    // If a timer fired late, the time-out may already have been used up, so use at least 1 ms.
    const leftMs = Math.max(1, timeoutMs - (performance.now() - this.#startedMs));
    this.#leg.refer(
      {
        ...{ target, timeoutMs: leftMs },
        ...(trunk === undefined ? {} : { trunk }),
        ...(headers === undefined ? {} : { headers }),
      },
      (event) => this.#observe(event),
    );
  }

  /**
   * Reports success if the far end had already accepted the REFER when it hung up. Many carriers
   * just send a BYE once the agent has answered.
   */
  onFarEndHangUp(): void {
    if (this.#state === 'taken') this.#succeed({ hasHungUp: true });
  }

  giveUp(): void {
    this.#finish();
  }

  #observe(event: ReferEvent): void {
    if (this.#state === 'over') return;
    const at = this.#ports.clock.now();
    switch (event.kind) {
      case 'progress':
        this.#state = 'taken';
        // 202 is the response to the REFER itself, and 100 comes from the next hop.
        if (event.sipStatus >= 180 && event.sipStatus < 200) {
          this.#report({ kind: 'ringing', sipStatus: event.sipStatus, earlyMedia: false });
        }
        break;
      case 'taken over':
        this.#succeed({ hasHungUp: false });
        break;
      case 'failed':
        this.#fail({ kind: 'leg', failure: event.failure });
        break;
      case 'unheard':
        this.#fail({ kind: 'unheard', at, reason: event.reason });
        break;
    }
  }

  #succeed(how: { readonly hasHungUp: boolean }): void {
    this.#finish();
    this.#report({ kind: 'referred', at: this.#ports.clock.now(), ...how });
  }

  #failHere(reason: string): void {
    this.#fail({ kind: 'gateway', at: this.#ports.clock.now(), reason });
  }

  /**
   * Reports the failure, at most once. The call may continue with its bot, which hears the person
   * again.
   */
  #fail(failure: TransferEnd): void {
    if (this.#state === 'over') return;
    this.#finish();
    this.#session.send({ kind: 'gateStream', isGated: false });
    this.#report({ kind: 'failed', failure });
  }

  #finish(): void {
    this.#state = 'over';
    clearTimeout(this.#timer);
  }
}
