// The gateway's messages that the sample bot reads, and the events that the bot reports.

import { z } from 'zod';

/** The Twilio Media Streams fields that the bot uses. */
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

/**
 * Parses a message. Never throws.
 *
 * @returns undefined if the text isn't a message in this protocol
 */
export function readGatewayMessage(text: string): GatewayMessage | undefined {
  try {
    return gatewayMessage.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

export type BotEvent =
  /** The bot refused a connection because its signature was missing or wrong. */
  | { readonly type: 'refused' }
  | { readonly type: 'started'; readonly callId: string }
  /** The line's mark has been returned, so the line was played to the end. */
  | { readonly type: 'said'; readonly line: string }
  | { readonly type: 'interrupted'; readonly line: string }
  | { readonly type: 'heard'; readonly turnMs: number }
  | { readonly type: 'dtmf'; readonly digit: string }
  | { readonly type: 'amd'; readonly amd: NonNullable<GatewayMessage['amd']> }
  | BotCallSummary;

/** The bot's summary of a call. */
export type BotCallSummary = {
  readonly type: 'ended';
  readonly callId: string;
  /** Close code of the WebSocket. */
  readonly code: number;
  /** Total duration of the voice that the bot heard. */
  readonly voiceMs: number;
  /** Number of turns in which the bot heard a voice. */
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
      return `was interrupted during its ${event.line} and fell silent`;
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
