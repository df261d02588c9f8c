// What the parts of the engine share. Made once by startSipEngine.

import type { Logger } from '../../lib/logger.ts';
import type { CallReports } from './call-reports.ts';
import type { DialogTable } from './dialog.ts';
import type { EngineClock, SipTimers } from './engine-timing.ts';
import type { Identifiers } from './identifiers.ts';
import type { LocalIdentity } from './local-identity.ts';
import type { NameResolver } from './name-resolver.ts';
import type { RouteTable } from './route-table.ts';
import type { SipStack } from './sip-stack.ts';

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
