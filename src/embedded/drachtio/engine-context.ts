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
import type { SipPeer } from './transport/sip-peer.ts';
import type { TlsDirectory } from './transport/tls-settings.ts';
import type { TlsConnected } from './transport/tls-transport.ts';

export type EngineContext = {
  readonly clock: EngineClock;
  readonly timers: SipTimers;
  readonly logger: Logger;
  readonly identifiers: Identifiers;
  readonly local: LocalIdentity;
  /**
   * The address that a peer should send its requests to. The engine doesn't listen for TLS, so over
   * TLS that's this end of the connection, which the peer can recognise and reuse.
   */
  readonly localFor: (peer: SipPeer) => LocalIdentity;
  readonly stack: SipStack;
  readonly dialogs: DialogTable;
  readonly routes: RouteTable;
  readonly resolver: NameResolver;
  readonly tls: TlsDirectory;
  /** Opens a TLS connection if there's none yet, and calls `done` when it's verified or failed. */
  readonly whenConnected: (peer: SipPeer, done: (result: TlsConnected) => void) => void;
  readonly reports: CallReports;
};
