// vosk-server's protocol (alphacep/vosk-server, websocket/asr_server.py): a message with the configuration, audio as binary
// messages, and for each of those one answer: `partial`, or `text` where a sentence ended. The language is the model's.

import type { SpeechToTextSettings } from '../../calls/call-types.ts';
import { chunkMs, type Message, type Protocol, parseObject, timedWords } from './protocol.ts';
import type { SpeechToTextProvider } from './providers.ts';

export function voskProtocol(
  provider: SpeechToTextProvider,
  _settings: SpeechToTextSettings,
): Protocol {
  const config = { sample_rate: 8_000, ...typed(provider.parameters) };
  /** An answer a chunk, in their order: so it is known how far the server has listened. */
  let answers = 0;
  return {
    url: provider.url,
    headers: provider.apiKey === undefined ? {} : { authorization: `Bearer ${provider.apiKey}` },
    opening: JSON.stringify({ config }),
    // The Python server compares it letter by letter, blanks included.
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
  // With `words: true` in its parameters.
  const words = timedWords(message['result'], ['word']);
  return {
    ...{ kind: 'said', transcript, isFinal: true },
    ...(words === undefined ? {} : { words }),
  };
}

/** With `max_alternatives` the best comes first. */
function finalText({ text, alternatives }: Readonly<Record<string, unknown>>): string | undefined {
  if (typeof text === 'string') return text;
  const [first] = Array.isArray(alternatives) ? (alternatives as unknown[]) : [];
  if (typeof first !== 'object' || first === null) return undefined;
  const { text: best } = first as { readonly text?: unknown };
  return typeof best === 'string' ? best : undefined;
}

/** The file's values are text; Vosk wants numbers and booleans as such. */
function typed(parameters: SpeechToTextProvider['parameters']): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [
      name,
      /^(true|false|-?\d+(\.\d+)?)$/.test(value) ? JSON.parse(value) : value,
    ]),
  );
}
