// The embedded SIP engine. Applications connect to it over drachtio's control protocol, and it
// exchanges SIP messages with the network over UDP and TCP. This file just wires up the parts. A
// message travels from the transport through the stack (transactions) and uac or uas (dialogs) to
// the control client, or in the opposite direction.

import { isIPv6 } from 'node:net';
import type { Logger } from '../../lib/logger.ts';
import type { ControlClient } from './control/control-client.ts';
import { ControlServer, type SipCommand } from './control/control-server.ts';
import { CallReports } from './dialog/call-reports.ts';
import { type Dialog, DialogTable } from './dialog/dialog.ts';
import { DialogRequests } from './dialog/dialog-requests.ts';
import { IncomingTable } from './dialog/incoming.ts';
import { LateAnswers } from './dialog/late-answers.ts';
import { ReliableProvisionals } from './dialog/reliable-provisionals.ts';
import { Uac } from './dialog/uac.ts';
import { UacCancel } from './dialog/uac-cancel.ts';
import { UacDialog } from './dialog/uac-dialog.ts';
import { applicationGone, UacResponses } from './dialog/uac-responses.ts';
import { Uas } from './dialog/uas.ts';
import { UasResponses } from './dialog/uas-responses.ts';
import type { EngineContext } from './engine-context.ts';
import { createIdentifiers } from './message/identifiers.ts';
import { advertisedHost } from './message/local-identity.ts';
import { SipStack } from './sip-stack.ts';
import {
  defaultSipTimers,
  type EngineClock,
  type SipTimers,
  systemClock,
} from './transaction/engine-timing.ts';
import { NameResolver } from './transport/name-resolver.ts';
import { RouteTable } from './transport/route-table.ts';
import { peerKey, type SipPeer, type TransportHandlers } from './transport/sip-peer.ts';
import { TcpTransport } from './transport/tcp-transport.ts';
import { TlsDirectory, type TlsTable } from './transport/tls-settings.ts';
import { TlsTransport } from './transport/tls-transport.ts';
import { UdpTransport } from './transport/udp-transport.ts';

export type { SipTimers } from './transaction/engine-timing.ts';
export type { TlsTable } from './transport/tls-settings.ts';

export type SipEngineAddresses = {
  readonly sipHost: string;
  /** Port for both UDP and TCP. In the options, 0 selects a port that's free for both. */
  readonly sipPort: number;
  readonly controlHost: string;
  readonly controlPort: number;
};

export type SipEngineOptions = SipEngineAddresses & {
  readonly secret: string;
  readonly timers?: Partial<SipTimers>;
  /** TLS settings by trunk. Default: the system's CAs, and no client certificate. */
  readonly tls?: TlsTable;
  /** Tests pass a fast clock so that they don't have to wait for the protocol's long timers. */
  readonly clock?: EngineClock;
  readonly logger: Logger;
};

export type SipEngineStatistics = {
  readonly clientTransactions: number;
  readonly serverTransactions: number;
  readonly dialogs: number;
  readonly clients: number;
  readonly tcpConnections: number;
  readonly tlsConnections: number;
  readonly udpSockets: number;
  /** Number of messages that we couldn't parse, or that didn't match any transaction. */
  readonly dropped: number;
};

export type SipEngine = SipEngineAddresses &
  AsyncDisposable & {
    close(): Promise<void>;
    /**
     * Replaces the TLS settings for new connections. Existing dialogs keep their connections.
     * @throws Error if a certificate or key can't be used, in which case nothing changes
     */
    useTls(table: TlsTable): void;
    statistics(): SipEngineStatistics;
  };

type Listeners = { readonly udp: UdpTransport; readonly tcp: TcpTransport; readonly port: number };
type Transports = Listeners & { readonly tls: TlsTransport };

type Handlers = {
  readonly uac: Uac;
  readonly inDialog: UacDialog;
  readonly cancels: UacCancel;
  readonly answers: UasResponses;
};

/**
 * If a random TCP port is free, the same UDP port is rarely in use. So if we fail this many times
 * in a row, something else must be wrong.
 */
const maxPortAttempts = 20;

export async function startSipEngine(options: SipEngineOptions): Promise<SipEngine> {
  const timers: SipTimers = { ...defaultSipTimers, ...options.timers };
  const clock = guardedClock(options.clock ?? systemClock, options.logger);
  const stack = new SipStack({ clock, timers, logger: options.logger });
  const directory = new TlsDirectory();
  directory.replace(options.tls ?? {});
  const dialogs = new DialogTable();
  const handlers: TransportHandlers = {
    onMessage: (text, peer) => guard(options.logger, () => stack.receive(text, peer)),
    // Deferred, because the application must receive the reply to its command before the failure.
    onFailure: (peer, reason) =>
      queueMicrotask(() => guard(options.logger, () => stack.peerFailed(peer, reason))),
  };
  const isNeeded = (peer: SipPeer): boolean => isUsed(dialogs, peer);
  const tls = new TlsTransport(
    { timers, clock, logger: options.logger, directory, isNeeded },
    handlers,
  );
  const transports = { ...(await listen(options, timers, clock, handlers)), tls };
  const local = { host: advertisedHost(options.sipHost), port: transports.port };
  const routes = new RouteTable();
  const context: EngineContext = {
    clock,
    timers,
    logger: options.logger,
    identifiers: createIdentifiers(),
    local,
    localFor: (peer) => {
      const port = peer.protocol === 'tls' ? tls.localPort(peer) : undefined;
      return { host: peer.local ?? local.host, port: port ?? local.port };
    },
    stack,
    dialogs,
    routes,
    resolver: new NameResolver(isIPv6(options.sipHost) ? 6 : 4),
    tls: directory,
    whenConnected: (peer, done) =>
      tls.whenConnected(peer, (result) => guard(options.logger, () => done(result))),
    reports: new CallReports(routes, clock),
  };
  try {
    return await openControl(options, context, transports);
  } catch (error) {
    await closeTransports(transports);
    throw error;
  }
}

async function openControl(
  options: SipEngineOptions,
  context: EngineContext,
  transports: Transports,
): Promise<SipEngine> {
  const { stack } = context;
  const requests = new DialogRequests(context);
  const responses = new UacResponses(context, requests);
  const inDialog = new UacDialog(context, requests, responses);
  const uac = new Uac(context, { requests, responses, inDialog });
  const cancels = new UacCancel(context, requests, responses);
  const parts = {
    requests,
    responses,
    incoming: new IncomingTable(),
    reliable: new ReliableProvisionals(context.clock, context.timers),
  };
  const uas = new Uas(context, parts);
  const answers = new UasResponses(context, parts);
  const lateAnswers = new LateAnswers(context, requests);
  stack.attach(
    {
      onRequest: (received) => uas.receive(received),
      onCancel: (cancel, invite) => uas.receiveCancel(cancel, invite),
      onAck: (ack, peer, bytes) => uas.receiveAck(ack, peer, bytes),
      onUnmatchedResponse: (response, peer) => lateAnswers.receive(response, peer),
    },
    transports,
  );
  const control = new ControlServer(
    {
      host: options.controlHost,
      port: options.controlPort,
      secret: options.secret,
      onSip: (client, messageId, command) =>
        guard(options.logger, () =>
          dispatch({ uac, inDialog, cancels, answers }, client, messageId, command),
        ),
      onGone: (client) => {
        uas.releaseClient(client);
        cancels.cancelCallsOf(client);
        for (const dialog of context.dialogs.releaseOwner(client)) {
          if (!responses.hangUpUnacknowledged(dialog, applicationGone))
            watchOwnerless(context, requests, dialog);
        }
      },
    },
    context,
  );
  const controlPort = await control.listen();
  const { host, port } = context.local;
  options.logger.info({ sip: `${host}:${port}`, controlPort }, 'sip engine is listening');
  return toEngine(options, context, transports, control, controlPort);
}

function toEngine(
  options: SipEngineOptions,
  context: EngineContext,
  transports: Transports,
  control: ControlServer,
  controlPort: number,
): SipEngine {
  let closing: Promise<void> | undefined;
  const closeAll = async (): Promise<void> => {
    await control.close();
    for (const dialog of context.dialogs.all()) {
      context.clock.clearTimer(dialog.session?.timer);
      context.clock.clearTimer(dialog.ownerlessTimer);
      context.clock.clearTimer(dialog.byeTimer);
    }
    context.stack.stop();
    await closeTransports(transports);
  };
  const close = (): Promise<void> => {
    closing ??= closeAll();
    return closing;
  };
  return {
    sipHost: options.sipHost,
    sipPort: transports.port,
    controlHost: options.controlHost,
    controlPort,
    close,
    useTls: (table) => context.tls.replace(table),
    statistics: () => ({
      clientTransactions: context.stack.counts.client,
      serverTransactions: context.stack.counts.server,
      dialogs: context.dialogs.size,
      clients: control.clientCount,
      tcpConnections: transports.tcp.connectionCount,
      tlsConnections: transports.tls.connectionCount,
      udpSockets: transports.udp.socketCount,
      dropped: context.stack.counts.dropped,
    }),
    [Symbol.asyncDispose]: close,
  };
}

/**
 * Handlers shouldn't throw. If one does, we lose a message, but at least a peer can't end
 * everybody's calls by triggering a bug.
 */
function guard(logger: Logger, work: () => void): void {
  try {
    work();
  } catch (error) {
    logger.error({ err: error }, 'sip engine failed on a message');
  }
}

function guardedClock(clock: EngineClock, logger: Logger): EngineClock {
  return {
    now: () => clock.now(),
    setTimer: (callback, delayMs) => clock.setTimer(() => guard(logger, callback), delayMs),
    clearTimer: (handle) => clock.clearTimer(handle),
  };
}

/** The order of precedence is the same as in drachtio-server (see its client.cpp). */
function dispatch(
  { uac, inDialog, cancels, answers }: Handlers,
  client: ControlClient,
  messageId: string,
  command: SipCommand,
): void {
  const { sip, transactionId, dialogId } = command;
  if (sip.startLine.startsWith('SIP/')) {
    if (transactionId === '') {
      client.refuseAndClose(messageId, 'transaction id missing');
      return;
    }
    answers.respond(client, messageId, transactionId, sip);
    return;
  }
  if (dialogId !== '') {
    inDialog.send(client, messageId, dialogId, sip);
    return;
  }
  if (transactionId !== '') {
    cancels.cancel(client, messageId, transactionId, sip);
    return;
  }
  uac.sendNew(client, messageId, sip, command.route);
}

/**
 * Hangs up a dialog that hasn't had an owner for `ownerlessMs`, because otherwise the peer would be
 * stuck in the call forever. Until then, another application may take over the dialog by its id.
 */
function watchOwnerless(context: EngineContext, requests: DialogRequests, dialog: Dialog): void {
  dialog.ownerlessTimer = context.clock.setTimer(() => {
    requests.hangUp(dialog, applicationGone);
  }, context.timers.ownerlessMs);
}

/** Whether the far end of a dialog sends its requests over the connection to this peer. */
function isUsed(dialogs: DialogTable, peer: SipPeer): boolean {
  const key = peerKey(peer);
  for (const dialog of dialogs.all()) if (peerKey(dialog.peer) === key) return true;
  return false;
}

/**
 * Binds TCP first, because that fails if the port is in use by another engine. A UDP bind with
 * SO_REUSEADDR would succeed.
 */
async function listen(
  options: SipEngineOptions,
  timers: SipTimers,
  clock: EngineClock,
  handlers: TransportHandlers,
): Promise<Listeners> {
  const shared = { host: options.sipHost, timers, clock, logger: options.logger };
  for (let attempt = 1; ; attempt += 1) {
    const tcp = new TcpTransport({ ...shared, port: options.sipPort }, handlers);
    const port = await tcp.listen();
    const udp = new UdpTransport({ ...shared, port }, handlers);
    try {
      await udp.listen();
      return { udp, tcp, port };
    } catch (error) {
      await tcp.close();
      if (options.sipPort !== 0 || attempt >= maxPortAttempts) {
        throw new Error(`cannot listen for SIP on UDP port ${port}`, { cause: error });
      }
    }
  }
}

async function closeTransports({ udp, tcp, tls }: Transports): Promise<void> {
  tls.close();
  await Promise.all([udp.close(), tcp.close()]);
}
