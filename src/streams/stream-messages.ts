// Writes and reads messages in the Twilio Media Streams format. We write our own messages, and read
// the bot's, which we don't trust. Note that `sequenceNumber`, `chunk` and `timestamp` are strings,
// while the values in `mediaFormat` are numbers. Bots check these types.

import type { AmdEvent } from '../calls/detection/amd-event.ts';
import type { TransferFailure } from '../calls/transfer/transfer.ts';
import type { StreamIds } from './stream-ids.ts';

export const connectedMessage = '{"event":"connected","protocol":"Call","version":"1.0.0"}';

/** Writes the messages for one connection. Sequence numbers begin at `start`. */
export class MessageWriter {
  readonly #ids: StreamIds;
  readonly #mediaEnd: string;
  #sequence = 0;
  #chunk = 0;

  constructor(ids: StreamIds) {
    this.#ids = ids;
    this.#mediaEnd = `"},"streamSid":"${ids.streamSid}"}`;
  }

  start(customParameters: Readonly<Record<string, string>>): string {
    // Pick the fields by name, because the object may also contain secrets.
    const { accountSid, streamSid, callSid } = this.#ids;
    return this.#write('start', {
      start: {
        ...{ accountSid, streamSid, callSid },
        tracks: ['inbound'],
        mediaFormat: { encoding: 'audio/x-mulaw', sampleRate: 8_000, channels: 1 },
        customParameters,
      },
    });
  }

  /**
   * Builds the JSON by hand, because we write this message every 20 ms in every call, and nothing
   * in it needs escaping.
   */
  media(mulaw: Buffer, timestampMs: number): string {
    this.#sequence += 1;
    this.#chunk += 1;
    return `{"event":"media","sequenceNumber":"${this.#sequence}","media":{"track":"inbound","chunk":"${this.#chunk}","timestamp":"${timestampMs}","payload":"${mulaw.toString('base64')}${this.#mediaEnd}`;
  }

  dtmf(digit: string): string {
    return this.#write('dtmf', { dtmf: { track: 'inbound_track', digit } });
  }

  mark(name: string): string {
    return this.#write('mark', { mark: { name } });
  }

  amd(amd: AmdEvent): string {
    return this.#write('amd', { amd });
  }

  transferFailed(transfer: TransferFailure): string {
    return this.#write('transfer-failed', { transfer });
  }

  stop(): string {
    const { accountSid, callSid } = this.#ids;
    return this.#write('stop', { stop: { accountSid, callSid } });
  }

  #write(event: string, body: object): string {
    this.#sequence += 1;
    return JSON.stringify({
      event,
      sequenceNumber: String(this.#sequence),
      ...body,
      streamSid: this.#ids.streamSid,
    });
  }
}

export type BotMessage =
  | { readonly kind: 'media'; readonly payload: string }
  | { readonly kind: 'mark'; readonly name: string }
  | { readonly kind: 'clear' };

/**
 * Parses a bot's message. Never throws.
 * @returns undefined if the message is unknown or invalid
 */
export function readBotMessage(text: string, streamSid: string): BotMessage | undefined {
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(message)) return undefined;
  // A connection has only one stream, so `streamSid` is optional.
  const named = message['streamSid'];
  if (named !== undefined && named !== streamSid) return undefined;
  return readEvent(message);
}

function readEvent(message: Fields): BotMessage | undefined {
  switch (message['event']) {
    case 'media': {
      const payload = readText(message['media'], 'payload');
      return payload === undefined ? undefined : { kind: 'media', payload };
    }
    case 'mark': {
      const name = readText(message['mark'], 'name');
      return name === undefined ? undefined : { kind: 'mark', name };
    }
    case 'clear':
      return { kind: 'clear' };
    default:
      return undefined;
  }
}

type Fields = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null;
}

function readText(value: unknown, name: string): string | undefined {
  const field = isObject(value) ? value[name] : undefined;
  return typeof field === 'string' ? field : undefined;
}
