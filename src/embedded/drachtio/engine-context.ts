// Services that all parts of the engine share. `startSipEngine` creates them.

import type { Logger } from '../../lib/logger.ts';
import type { CallReports } from './dialog/call-reports.ts';
import type { DialogTable } from './dialog/dialog.ts';
import type { Identifiers } from './message/identifiers.ts';
import type { LocalIdentity } from './message/local-identity.ts';
import type { SipStack } from './sip-stack.ts';
import type { EngineClock, SipTimers } from './transaction/engine-timing.ts';
import type { NameResolver } from './transport/name-resolver.ts';
import type { RouteTable } from './transport/route-table.ts';

export type EngineContext = {
  readonly clock: EngineClock;
  readonly timers: SipTimers;
  readonly logger: Logger;
  readonly identifiers: Identifiers;
  readonly local: LocalIdentity;
  readonly stack: SipStack;
  readonly dialogs: DialogTable;
  readonly routes: RouteTable;
  readonly resolver: NameResolver;
  readonly reports: CallReports;
};
