// Commands to the calls of this process. One that comes again under its id is answered as before and done once.

import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { assertNever } from '../call-types.ts';
import type { Command, CommandOf, CommandReply } from '../contract/command.ts';
import type { CallId } from '../contract/identity.ts';
import { CallPlaying, type PlayingPorts } from '../playback/play-command.ts';
import { type StreamingPorts, streamByCommand } from '../stream/stream-command.ts';
import { type TransferringPorts, transferByCommand } from '../transfer/transfer-command.ts';
import type { CallRegistry, LiveCall } from './call-registry.ts';
import { type NoteCommand, notedCommand } from './command-notes.ts';

export type CallCommandsPorts = PlayingPorts &
  StreamingPorts &
  TransferringPorts & {
    readonly registry: Pick<CallRegistry, 'live' | 'end'>;
    /** For a command that has none. */
    readonly newCommandId: () => string;
    /** For who looks into the call. */
    readonly note?: NoteCommand;
  };

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
  /** Of calls that got a command, while they are here. */
  readonly #commanded = new Map<CallId, Commanded>();

  constructor(ports: CallCommandsPorts) {
    this.#ports = ports;
  }

  /** Undefined: the call is not here. `askedBy`: as it is shown to who looks into the call. */
  run(callId: CallId, command: Command, askedBy?: string): Promise<CommandReply> | undefined {
    const live = this.#ports.registry.live(callId);
    if (live === undefined) return undefined;
    const commanded = this.#commandedOf(callId);
    const { id } = command;
    const obey = (commandId: string): Promise<CommandReply> => {
      const reply = this.#obey(live, commanded, command, commandId);
      const note: Parameters<typeof notedCommand>[0] = (one) => this.#ports.note?.(callId, one);
      return notedCommand(note, { command, commandId, askedBy }, reply);
    };
    if (id === undefined) return obey(this.#ports.newCommandId());
    const digest = digestOf(command);
    const earlier = commanded.remembered.get(id);
    if (earlier !== undefined) return earlier.digest === digest ? earlier.reply : idUsed();
    const reply = obey(id);
    commanded.remembered.set(id, { digest, reply });
    // What was not done may be asked for again: the call may have been answered by then.
    const forget = (): boolean => commanded.remembered.delete(id);
    reply.then(({ ok }) => {
      if (!ok) forget();
    }, forget);
    return reply;
  }

  /** The call has ended. */
  forget(callId: CallId): void {
    this.#commanded.delete(callId);
  }

  async #obey(
    live: LiveCall,
    { playing }: Commanded,
    command: Command,
    commandId: string,
  ): Promise<CommandReply> {
    if (command.command === 'hangup') {
      this.#ports.registry.end(live.call.callId, { by: 'application' });
      // Bots of before there were ids get the reply of then.
      const named = command.id === undefined ? {} : { commandId };
      return { ok: true, state: 'ending', ...named };
    }
    if (live.state !== 'answered') return refusedBy(live.state, command);
    switch (command.command) {
      case 'play':
        return await playing.play(live, command, commandId);
      case 'stop':
        playing.stop(live);
        return { ok: true, commandId, state: live.state };
      case 'dtmf':
        return pressKeys(live, command, commandId);
      case 'stream':
        return await streamByCommand(this.#ports, live.call, command, commandId);
      case 'transfer':
        return await transferByCommand(this.#ports, live.call, command, commandId);
      default:
        return assertNever(command);
    }
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

/** 40 ms are enough for most exchanges (Q.24), 70 ms for all; people press for some 100. */
const defaultKeyMs = 100;

function pressKeys(
  live: LiveCall,
  { digits, durationMs = defaultKeyMs }: CommandOf<'dtmf'>,
  commandId: string,
): CommandReply {
  if (!live.takesKeys) {
    const error = 'The far end takes no keys: its SDP has no telephone-event (RFC 4733).';
    return { ok: false, code: 'digits', error };
  }
  live.send({ type: 'command.press', keys: { commandId, digits, durationMs } });
  return { ok: true, commandId, state: live.state };
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

/** The state forbids it. */
export function refusedBy(state: string, { command }: Command): CommandReply {
  const error = `The call is ${state}; ${command} needs one that is answered.`;
  return { ok: false, code: 'state', error };
}

async function idUsed(): Promise<CommandReply> {
  return { ok: false, code: 'id-used', error: 'The same id came before with another command.' };
}
