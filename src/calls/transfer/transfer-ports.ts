// What a transfer needs, and what its call's line asks of it.

import type { Logger } from '../../lib/logger.ts';
import type { AcceptedCall } from '../call-types.ts';
import type { PressedKey } from '../keys/passed-keys.ts';
import type { SecondLeg } from '../life/call-step.ts';
import type { Clock, SecondLegPort, SipPort } from '../ports.ts';

export type TransferPorts = {
  readonly sip: SipPort;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly admission: SecondLegPort;
  /** As soon as possible; false: it was not stored, and the call is not this process's any more, or has ended. Never rejects. */
  readonly storeLeg: (call: AcceptedCall, leg: SecondLeg) => Promise<boolean>;
};

/** Tells the machine what comes of it, and nothing more once it was given up. */
export type OngoingTransfer = {
  start(): void;
  /** The far end of the first leg has pressed a key. */
  passKey?(key: PressedKey): void;
  /** The call is over, or does not want it any more. Idempotent. */
  giveUp(reason: string): void;
  /** Who was to be connected is a machine after all: no agent is called for it. An agent who has answered already is left with it. */
  withdraw?(): void;
  /** The first leg was hung up by its far end: whether that is what the transfer was to come to. Then the machine was told so. */
  endsBySuccess?(): boolean;
};
