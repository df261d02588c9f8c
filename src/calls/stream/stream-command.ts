// Streams by command: judged for their call, then begun or ended if nothing has come between.

import type { AcceptedCall } from '../call-types.ts';
import type { CommandOf, CommandReply } from '../contract/command.ts';
import type { CallRegistry } from '../life/call-registry.ts';
import type { RequestedStream } from './stream.ts';

type Begun = CommandOf<'stream'> & { readonly url: string };

export type JudgedStream =
  | { readonly ok: true; readonly stream: RequestedStream }
  | { readonly ok: false; readonly refusal: Extract<CommandReply, { readonly ok: false }> };

export type StreamingPorts = {
  readonly registry: Pick<CallRegistry, 'live'>;
  /** By where bots may be, and by what the app that placed the call has, not the one that asks. */
  readonly judgeStream: (
    call: AcceptedCall,
    command: Pick<Begun, 'url' | 'parameters'>,
  ) => Promise<JudgedStream>;
};

export async function streamByCommand(
  { registry, judgeStream }: StreamingPorts,
  call: AcceptedCall,
  command: CommandOf<'stream'>,
  commandId: string,
): Promise<CommandReply> {
  const judged = isBegun(command) ? await judgeStream(call, command) : undefined;
  if (judged?.ok === false) return judged.refusal;
  // Meanwhile the call may have ended, or another process have it.
  const live = registry.live(call.callId);
  if (live === undefined) return { ok: false, code: 'ended', error: 'The call has ended.' };
  const { state, streamObstacles } = live;
  const obstacle = judged === undefined ? streamObstacles.toEnd : streamObstacles.toBegin;
  const error = state === 'answered' ? obstacle : `The call is ${state}.`;
  if (error !== undefined) return { ok: false, code: 'state', error };
  const stream = judged === undefined ? {} : { stream: judged.stream };
  live.send({ type: 'command.stream', commandId, ...stream });
  return { ok: true, commandId, state };
}

function isBegun(command: CommandOf<'stream'>): command is Begun {
  return command.url !== null;
}
