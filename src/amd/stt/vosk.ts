// vosk-server's protocol (alphacep/vosk-server, websocket/asr_server.py). The first message
// contains the configuration, and the audio follows as binary messages. The server replies to each
// audio message with `partial`, or with `text` at the end of a sentence. The language is a property
// of the model.

import type { SpeechToTextSettings } from '../../calls/call-types.ts';
import { chunkMs, type Message, type Protocol, parseObject, timedWords } from './protocol.ts';
import type { SpeechToTextProvider } from './providers.ts';

export function voskProtocol(
  provider: SpeechToTextProvider,
  _settings: SpeechToTextSettings,
): Protocol {
  const config = { sample_rate: 8_000, ...typed(provider.parameters) };
  /**
   * The server sends one reply per chunk, in order, so the number of replies tells us how far it
   * has listened.
   */
  let answers = 0;
  return {
    url: provider.url,
    headers: provider.apiKey === undefined ? {} : { authorization: `Bearer ${provider.apiKey}` },
    opening: JSON.stringify({ config }),
    // The Python server compares this text literally, spaces included.
    closing: '{"eof" : 1}',
    read(text) {
      const message = readMessage(text);
      if (message.kind !== 'said') return message;
      answers += 1;
      return { ...message, untilMs: answers * chunkMs };
    },
  };
}

function readMessage(text: string): Message {
  const message = parseObject(text);
  if (message === undefined) return { kind: 'rubbish' };
  const { partial } = message;
  if (typeof partial === 'string') return { kind: 'said', transcript: partial, isFinal: false };
  const transcript = finalText(message);
  if (transcript === undefined) return { kind: 'other' };
  // These are only sent if the parameters contain `words: true`.
  const words = timedWords(message['result'], ['word']);
  return {
    ...{ kind: 'said', transcript, isFinal: true },
    ...(words === undefined ? {} : { words }),
  };
}

/** With `max_alternatives` the best alternative comes first. */
function finalText({ text, alternatives }: Readonly<Record<string, unknown>>): string | undefined {
  if (typeof text === 'string') return text;
  const [first] = Array.isArray(alternatives) ? (alternatives as unknown[]) : [];
  if (typeof first !== 'object' || first === null) return undefined;
  const { text: best } = first as { readonly text?: unknown };
  return typeof best === 'string' ? best : undefined;
}

/**
 * Converts the parameters from strings, which the file contains, to the numbers and booleans that
 * Vosk expects.
 */
function typed(parameters: SpeechToTextProvider['parameters']): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [
      name,
      /^(true|false|-?\d+(\.\d+)?)$/.test(value) ? JSON.parse(value) : value,
    ]),
  );
}
