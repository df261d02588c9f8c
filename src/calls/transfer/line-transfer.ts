// Starts and ends a line's transfers, one at a time: a bridge (`call-bridge.ts`) or a referral
// (`call-referral.ts`).

import type { AcceptedCall } from '../call-types.ts';
import type { KeyReceiver, PressedKey } from '../keys/keys.ts';
import type { MediaSession } from '../media.ts';
import type { CallLeg } from '../ports.ts';
import { type BridgedPerson, CallBridge } from './call-bridge.ts';
import { CallReferral } from './call-referral.ts';
import type { Transfer } from './transfer.ts';
import type { OngoingTransfer, TransferPorts, TransferReport } from './transfer-report.ts';

export class LineTransfer {
  readonly #call: AcceptedCall;
  readonly #ports: TransferPorts | undefined;
  readonly #keys: Omit<KeyReceiver, 'acceptsKeys'>;
  readonly #report: (report: TransferReport) => void;
  #ongoing: OngoingTransfer | undefined;

  /**
   * @param ports undefined if calls are never transferred
   * @param keys sends key presses on the person's leg
   */
  constructor(
    call: AcceptedCall,
    ports: TransferPorts | undefined,
    keys: Omit<KeyReceiver, 'acceptsKeys'>,
    report: (report: TransferReport) => void,
  ) {
    this.#call = call;
    this.#ports = ports;
    this.#keys = keys;
    this.#report = report;
  }

  start(transfer: Transfer, line: { readonly leg: CallLeg; readonly session: MediaSession }): void {
    this.#ongoing?.giveUp('another transfer');
    const ports = this.#ports;
    if (ports === undefined) throw new Error('this line has no transfer ports');
    this.#ongoing =
      transfer.mode === 'refer'
        ? new CallReferral(this.#call, transfer, line, ports, this.#report)
        : new CallBridge(this.#call, transfer, this.#endOf(line.session), ports, this.#report);
    this.#ongoing.start();
  }

  #endOf(session: MediaSession): BridgedPerson {
    return { session, keys: { ...this.#keys, acceptsKeys: () => session.acceptsKeys() } };
  }

  /** Passes on a key press from the person. */
  passKey(key: PressedKey): void {
    this.#ongoing?.passKey?.(key);
  }

  giveUp(reason: string): void {
    this.#ongoing?.giveUp(reason);
    this.#ongoing = undefined;
  }

  withdraw(): void {
    this.#ongoing?.withdraw?.();
  }

  /** Handles a hang-up by the far end of the first leg, which may complete a referral. */
  onFarEndHangUp(): void {
    this.#ongoing?.onFarEndHangUp?.();
  }
}
