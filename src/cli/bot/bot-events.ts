// What the sample bot reads of the gateway's messages, and what it tells of its calls.

import { z } from 'zod';

/** As much of Twilio Media Streams as it uses. */
const gatewayMessage = z.object({
  event: z.string(),
  start: z
    .object({ streamSid: z.string(), customParameters: z.record(z.string(), z.string()) })
    .optional(),
  media: z.object({ payload: z.string() }).optional(),
  mark: z.object({ name: z.string() }).optional(),
  dtmf: z.object({ digit: z.string() }).optional(),
  amd: z.looseObject({ event: z.string(), reason: z.string().optional() }).optional(),
});
export type GatewayMessage = z.infer<typeof gatewayMessage>;

/** Undefined: not for us, or not of this protocol. Never throws. */
export function readGatewayMessage(text: string): GatewayMessage | undefined {
  try {
    return gatewayMessage.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

export type BotEvent =
  /** Its signature is missing or wrong. */
  | { readonly type: 'refused' }
  | { readonly type: 'started'; readonly callId: string }
  /** To the end, as the mark says that came back. */
  | { readonly type: 'said'; readonly line: string }
  | { readonly type: 'interrupted'; readonly line: string }
  | { readonly type: 'heard'; readonly turnMs: number }
  | { readonly type: 'dtmf'; readonly digit: string }
  | { readonly type: 'amd'; readonly amd: NonNullable<GatewayMessage['amd']> }
  | BotCallSummary;

/** Counted during the call. */
export type BotCallSummary = {
  readonly type: 'ended';
  readonly callId: string;
  /** Of the WebSocket. */
  readonly code: number;
  /** How much voice it heard, in how many turns. */
  readonly voiceMs: number;
  readonly turns: number;
  readonly linesSaid: number;
  readonly interruptions: number;
};

export function describeBotEvent(event: BotEvent): string {
  switch (event.type) {
    case 'refused':
      return 'refused a connection: its signature is missing or wrong';
    case 'started':
      return `connected to call ${event.callId}`;
    case 'said':
      return `said its ${event.line}`;
    case 'interrupted':
      return `fell silent in its ${event.line}: interrupted`;
    case 'heard':
      return `heard ${seconds(event.turnMs)}`;
    case 'dtmf':
      return `key ${event.digit}`;
    case 'amd':
      return `${event.amd.event}${event.amd.reason === undefined ? '' : ` (${event.amd.reason})`}`;
    case 'ended':
      return `call ${event.callId} ended: heard ${seconds(event.voiceMs)} of voice in ${event.turns} turns, said ${event.linesSaid} lines, was interrupted ${event.interruptions} times`;
  }
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
