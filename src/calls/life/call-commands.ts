// Runs commands on this process's calls. If a command is repeated with the same id, it still runs
// only once, and every repeat gets the same reply.

import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { CallNote } from '../capture/capture.ts';
import type { Command, CommandReply } from '../contract/command.ts';
import type { CallId } from '../contract/identity.ts';
import { dtmfHandler } from '../keys/dtmf-command.ts';
import { optOutHandler } from '../opt-out/opt-out-command.ts';
import {
  CallPlaying,
  type PlayingPorts,
  playHandler,
  stopHandler,
} from '../playback/play-command.ts';
import { recordHandler } from '../recording/record-command.ts';
import { type StreamingPorts, streamHandler } from '../stream/stream-command.ts';
import { type TransferringPorts, transferHandler } from '../transfer/transfer-command.ts';
import type { CallRegistry, LiveCall } from './call-registry.ts';
import { type CommandContext, type CommandHandler, refusedBy } from './command-handler.ts';

/** Adds a note about a command to the call's capture. */
export type NoteCommand = (callId: CallId, note: CallNote) => void;

export type CallCommandsPorts = PlayingPorts &
  StreamingPorts &
  TransferringPorts & {
    readonly registry: Pick<CallRegistry, 'live' | 'end'>;
    /** Generates an id for a command that was sent without one. */
    readonly newCommandId: () => string;
    /** Default: no notes. */
    readonly note?: NoteCommand;
  };

type HandlerPorts = CallCommandsPorts & { readonly playing: CallPlaying };

const hangUpHandler: CommandHandler<'hangup', HandlerPorts> = {
  note: () => 'hangup',
  execute({ id }, { live, ports }) {
    ports.registry.end(live.call.callId, { by: 'application' });
    // Older clients don't send an id, and their reply must not contain one.
    return { ok: true, state: 'ending', ...(id === undefined ? {} : { commandId: id }) };
  },
};

/** Handlers by command name. If one is missing, this doesn't compile. */
const handlers: {
  readonly [Name in Command['command']]: CommandHandler<Name, HandlerPorts>;
} = {
  hangup: hangUpHandler,
  play: playHandler,
  stop: stopHandler,
  dtmf: dtmfHandler,
  stream: streamHandler,
  transfer: transferHandler,
  record: recordHandler,
  optOut: optOutHandler,
};

function handlerOf<Name extends Command['command']>({
  command,
}: {
  readonly command: Name;
}): CommandHandler<Name, HandlerPorts> {
  return handlers[command];
}

/**
 * Bounds the number of commands remembered per call. No real call comes close to this number. We
 * use `maxSize` because `max` would allocate all entries up front for every call.
 */
const rememberedBounds = { maxSize: 1_000, sizeCalculation: () => 1 };

/** A remembered command. We only keep the digest, because the command may contain a secret URL. */
type Remembered = { readonly digest: string; readonly reply: Promise<CommandReply> };

type CommandState = {
  readonly playing: CallPlaying;
  readonly remembered: LRUCache<string, Remembered>;
};

export class CallCommands {
  readonly #ports: CallCommandsPorts;
  /** State of each call that has received a command. */
  readonly #states = new Map<CallId, CommandState>();

  constructor(ports: CallCommandsPorts) {
    this.#ports = ports;
  }

  /**
   * Runs a command. `askedBy` names the sender in the call's capture.
   *
   * @returns undefined if this process doesn't have the call
   */
  run(callId: CallId, command: Command, askedBy?: string): Promise<CommandReply> | undefined {
    const live = this.#ports.registry.live(callId);
    if (live === undefined) return undefined;
    const { playing, remembered } = this.#stateOf(callId);
    const ports = { ...this.#ports, playing };
    const run = (commandId: string): Promise<CommandReply> =>
      this.#runAndNote(live, { command, commandId, askedBy }, () =>
        execute(command, { live, commandId, ports }),
      );
    const { id } = command;
    if (id === undefined) return run(this.#ports.newCommandId());
    const digest = digestOf(command);
    const earlier = remembered.get(id);
    if (earlier !== undefined) return earlier.digest === digest ? earlier.reply : idUsed();
    const reply = run(id);
    remembered.set(id, { digest, reply });
    // The sender may retry a rejected command under the same id, e.g. because the call has been
    // answered since.
    const forget = (): boolean => remembered.delete(id);
    reply.then(({ ok }) => {
      if (!ok) forget();
    }, forget);
    return reply;
  }

  /** Drops the state kept for a call that has ended. */
  forget(callId: CallId): void {
    this.#states.delete(callId);
  }

  async #runAndNote(
    live: LiveCall,
    { command, commandId, askedBy = 'unknown' }: NotedCommand,
    run: () => Promise<CommandReply>,
  ): Promise<CommandReply> {
    const at = Date.now();
    const begunMs = performance.now();
    const reply = await run();
    const what = handlerOf(command).note(command, live);
    this.#ports.note?.(live.call.callId, {
      ...{ kind: 'command', at, what, by: askedBy, commandId },
      tookMs: Math.round(performance.now() - begunMs),
      ...(reply.ok ? {} : { refusal: reply.error }),
    });
    return reply;
  }

  #stateOf(callId: CallId): CommandState {
    const known = this.#states.get(callId);
    if (known !== undefined) return known;
    const state = {
      playing: new CallPlaying(this.#ports),
      remembered: new LRUCache<string, Remembered>(rememberedBounds),
    };
    this.#states.set(callId, state);
    return state;
  }
}

type NotedCommand = {
  readonly command: Command;
  readonly commandId: string;
  /** Undefined if we don't know the sender. */
  readonly askedBy: string | undefined;
};

async function execute(
  command: Command,
  context: CommandContext<HandlerPorts>,
): Promise<CommandReply> {
  const { state }: LiveCall = context.live;
  if (command.command !== 'hangup' && state !== 'answered') return refusedBy(state, command);
  return await handlerOf(command).execute(command, context);
}

/**
 * Returns a digest that depends neither on the order of fields nor on whether the command arrived
 * over HTTP or NATS.
 */
function digestOf(command: Command): string {
  const canonical = JSON.stringify(command, (_name, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)))
      : value,
  );
  return createHash('sha256').update(canonical).digest('base64');
}

async function idUsed(): Promise<CommandReply> {
  return { ok: false, code: 'id-used', error: 'This id was already used for another command.' };
}
