// Runs commands on this process's calls and routes commands for other calls to their nodes.

import { randomUUID } from 'node:crypto';
import type { StreamServices } from '../api/services.ts';
import type { CallId } from '../calls/contract/identity.ts';
import type { RoutePlanner } from '../calls/dialout-ports.ts';
import { CallCommands, type NoteCommand } from '../calls/life/call-commands.ts';
import type { CallRegistry } from '../calls/life/call-registry.ts';
import { createCommandRouting, type NodeCommandRouting } from '../dialout/command-routing.ts';
import type { EndRecorder } from '../dialout/end-recorder.ts';
import { sendCommand, serveCommands } from '../events/commands.ts';
import type { Environment } from './environment.ts';
import type { Events } from './events.ts';
import type { Sounds } from './sounds.ts';
import type { Storage } from './storage.ts';

export type Commands = {
  readonly routing: NodeCommandRouting;
  /** Starts serving commands from NATS, until the closers stop it. */
  serve(): void;
  onEnded(callId: CallId): void;
};

export function openCommands(
  { config, clock, logger, closers }: Environment,
  {
    storage: { ledger, apps },
    events: { connection },
    sounds,
    routes,
    note,
    streams,
  }: {
    readonly storage: Storage;
    readonly events: Events;
    readonly sounds: Sounds;
    readonly routes: RoutePlanner;
    readonly note: NoteCommand;
    readonly streams: StreamServices;
  },
  { registry, ends }: { readonly registry: CallRegistry; readonly ends: EndRecorder },
): Commands {
  const { ownerId } = config;
  const commands = new CallCommands({
    ...{ registry, clock, sounds: sounds.port, routes, apps, streams },
    isSoundReachable: (reference) => sounds.isReachable(reference),
    newCommandId: () => `cmd-${randomUUID()}`,
    note,
  });
  const routing = createCommandRouting({
    ...{ commands, ledger, ends, clock, ownerId },
    askOwner: (callId, command, askedBy) => sendCommand(connection, callId, command, askedBy),
  });
  return {
    routing,
    serve() {
      const serving = serveCommands(
        connection,
        (callId, command, askedBy) => routing.runHere(callId as CallId, command, askedBy),
        logger,
      );
      // We don't close this until after the drain, because draining calls still accept commands.
      closers.add('commands', () => serving.stop());
    },
    onEnded: (callId) => commands.forget(callId),
  };
}
