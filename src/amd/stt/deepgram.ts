// Deepgram's streaming protocol (developers.deepgram.com, "Live Audio"). The query contains the
// settings, audio is sent as raw binary messages, and `Results` arrive as JSON. `KeepAlive` is
// meant for streams that pause, so we don't need it, because we send silence as audio.

import type { SpeechToTextSettings } from '../../calls/call-types.ts';
import { type Message, milliseconds, type Protocol, parseObject, timedWords } from './protocol.ts';
import type { SpeechToTextProvider } from './providers.ts';

export function deepgramProtocol(
  provider: SpeechToTextProvider,
  settings: SpeechToTextSettings,
): Protocol {
  const url = new URL(provider.url);
  for (const [name, value] of Object.entries({ ...provider.parameters, ...queryOf(settings) })) {
    url.searchParams.set(name, value);
  }
  return {
    url: url.href,
    headers: provider.apiKey === undefined ? {} : { authorization: `Token ${provider.apiKey}` },
    closing: JSON.stringify({ type: 'CloseStream' }),
    read: readMessage,
  };
}

function queryOf(settings: SpeechToTextSettings): Record<string, string> {
  // In Deepgram you can't set how long to wait for more speech. The closest setting is the gap that
  // ends an utterance.
  const utteranceEndMs = settings.sttVendorUtteranceEndMs ?? settings.continuousASRTimeoutInMS ?? 0;
  const { sttVendorEndpointing, sttLabel } = settings;
  return {
    encoding: 'linear16',
    sample_rate: '8000',
    channels: '1',
    language: settings.sttLanguage,
    // Deepgram measures UtteranceEnd on interim results, and rejects `utterance_end_ms` without
    // them.
    interim_results: String(settings.interim !== false || utteranceEndMs > 0),
    ...(utteranceEndMs > 0 ? { utterance_end_ms: String(utteranceEndMs) } : {}),
    ...(sttVendorEndpointing === undefined
      ? {}
      : { endpointing: sttVendorEndpointing === 0 ? 'false' : String(sttVendorEndpointing) }),
    ...(sttLabel === undefined ? {} : { tag: sttLabel }),
  };
}

function readMessage(text: string): Message {
  const message = parseObject(text);
  if (message === undefined) return { kind: 'rubbish' };
  if (message['type'] === 'Error') return { kind: 'error' };
  // Metadata, SpeechStarted, UtteranceEnd, or a type from a later version.
  if (message['type'] !== 'Results') return { kind: 'other' };
  const best = bestOf(message['channel']);
  const transcript = best?.transcript;
  if (typeof transcript !== 'string') return { kind: 'rubbish' };
  const words = timedWords(best?.words, ['punctuated_word', 'word']);
  const startS = milliseconds(message['start']);
  const durationS = milliseconds(message['duration']);
  return {
    kind: 'said',
    transcript,
    isFinal: message['is_final'] === true,
    ...(startS === undefined || durationS === undefined
      ? {}
      : { untilMs: Math.round((startS + durationS) * 1_000) }),
    ...(words === undefined ? {} : { words }),
  };
}

type Alternative = { readonly transcript?: unknown; readonly words?: unknown };

function bestOf(channel: unknown): Alternative | undefined {
  if (typeof channel !== 'object' || channel === null) return undefined;
  const { alternatives } = channel as { readonly alternatives?: unknown };
  const [first] = Array.isArray(alternatives) ? (alternatives as unknown[]) : [];
  return typeof first === 'object' && first !== null ? (first as Alternative) : undefined;
}
