// Commands to the calls of this process. One that comes again under its id is answered as before and done once.

import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { CallNote } from '../capture/capture.ts';
import type { Command, CommandReply } from '../contract/command.ts';
import type { CallId } from '../contract/identity.ts';
import { dtmfHandler } from '../keys/dtmf-command.ts';
import {
  CallPlaying,
  type PlayingPorts,
  playHandler,
  stopHandler,
} from '../playback/play-command.ts';
import { type StreamingPorts, streamHandler } from '../stream/stream-command.ts';
import { type TransferringPorts, transferHandler } from '../transfer/transfer-command.ts';
import type { CallRegistry, LiveCall } from './call-registry.ts';
import { type Asked, type CommandHandler, refusedBy } from './command-handler.ts';

/** Where commands are noted. */
export type NoteCommand = (callId: CallId, note: CallNote) => void;

export type CallCommandsPorts = PlayingPorts &
  StreamingPorts &
  TransferringPorts & {
    readonly registry: Pick<CallRegistry, 'live' | 'end'>;
    /** For a command that has none. */
    readonly newCommandId: () => string;
    /** For who looks into the call. */
    readonly note?: NoteCommand;
  };

type HandlerPorts = CallCommandsPorts & { readonly playing: CallPlaying };

const hangUpHandler: CommandHandler<'hangup', HandlerPorts> = {
  note: () => 'hangup',
  obey({ id }, { live, ports }) {
    ports.registry.end(live.call.callId, { by: 'application' });
    // Bots of before there were ids get the reply of then.
    return { ok: true, state: 'ending', ...(id === undefined ? {} : { commandId: id }) };
  },
};

/** By the name of the command; one without its row does not compile. */
const handlers: {
  readonly [Name in Command['command']]: CommandHandler<Name, HandlerPorts>;
} = {
  hangup: hangUpHandler,
  play: playHandler,
  stop: stopHandler,
  dtmf: dtmfHandler,
  stream: streamHandler,
  transfer: transferHandler,
};

function handlerOf<Name extends Command['command']>({
  command,
}: {
  readonly command: Name;
}): CommandHandler<Name, HandlerPorts> {
  return handlers[command];
}

/** For each call, some more than a person could listen to. `max` would allocate all of them for every call. */
const rememberedLimits = { maxSize: 1_000, sizeCalculation: () => 1 };

/** A URL in a command may hold a secret: nothing of a command is kept. */
type Remembered = { readonly digest: string; readonly reply: Promise<CommandReply> };

type Commanded = {
  readonly playing: CallPlaying;
  readonly remembered: LRUCache<string, Remembered>;
};

export class CallCommands {
  readonly #ports: CallCommandsPorts;
  /** What is kept of calls here that got a command. */
  readonly #commanded = new Map<CallId, Commanded>();

  constructor(ports: CallCommandsPorts) {
    this.#ports = ports;
  }

  /** Undefined: the call is not here. `askedBy`: as it is shown to who looks into the call. */
  run(callId: CallId, command: Command, askedBy?: string): Promise<CommandReply> | undefined {
    const live = this.#ports.registry.live(callId);
    if (live === undefined) return undefined;
    const { playing, remembered } = this.#commandedOf(callId);
    const ports = { ...this.#ports, playing };
    const run = (commandId: string): Promise<CommandReply> =>
      this.#noted(callId, { command, commandId, askedBy }, () =>
        obey(command, { live, commandId, ports }),
      );
    const { id } = command;
    if (id === undefined) return run(this.#ports.newCommandId());
    const digest = digestOf(command);
    const earlier = remembered.get(id);
    if (earlier !== undefined) return earlier.digest === digest ? earlier.reply : idUsed();
    const reply = run(id);
    remembered.set(id, { digest, reply });
    // What was not done may be asked for again: the call may have been answered by then.
    const forget = (): boolean => remembered.delete(id);
    reply.then(({ ok }) => {
      if (!ok) forget();
    }, forget);
    return reply;
  }

  /** The call has ended. */
  forget(callId: CallId): void {
    this.#commanded.delete(callId);
  }

  async #noted(
    callId: CallId,
    { command, commandId, askedBy = 'unknown' }: Noted,
    obeyed: () => Promise<CommandReply>,
  ): Promise<CommandReply> {
    const at = Date.now();
    const begunMs = performance.now();
    const reply = await obeyed();
    this.#ports.note?.(callId, {
      ...{ kind: 'command', at, what: handlerOf(command).note(command), by: askedBy, commandId },
      tookMs: Math.round(performance.now() - begunMs),
      ...(reply.ok ? {} : { refusal: reply.error }),
    });
    return reply;
  }

  #commandedOf(callId: CallId): Commanded {
    const known = this.#commanded.get(callId);
    if (known !== undefined) return known;
    const commanded = {
      playing: new CallPlaying(this.#ports),
      remembered: new LRUCache<string, Remembered>(rememberedLimits),
    };
    this.#commanded.set(callId, commanded);
    return commanded;
  }
}

type Noted = {
  readonly command: Command;
  readonly commandId: string;
  /** Undefined: who asked does not say. */
  readonly askedBy: string | undefined;
};

async function obey(command: Command, asked: Asked<HandlerPorts>): Promise<CommandReply> {
  const { state }: LiveCall = asked.live;
  if (command.command !== 'hangup' && state !== 'answered') return refusedBy(state, command);
  return await handlerOf(command).obey(command, asked);
}

/** The same at both doors, in whichever order its members came. */
function digestOf(command: Command): string {
  const canonical = JSON.stringify(command, (_name, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)))
      : value,
  );
  return createHash('sha256').update(canonical).digest('base64');
}

async function idUsed(): Promise<CommandReply> {
  return { ok: false, code: 'id-used', error: 'The same id came before with another command.' };
}
