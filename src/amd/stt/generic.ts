// Offhook's own protocol, which is small enough to implement in front of any engine. See
// sip-config/speech-to-text.md.

import type { SpeechToTextSettings } from '../../calls/call-types.ts';
import { type Message, milliseconds, type Protocol, parseObject } from './protocol.ts';
import type { SpeechToTextProvider } from './providers.ts';

export function genericProtocol(
  provider: SpeechToTextProvider,
  settings: SpeechToTextSettings,
): Protocol {
  const { sttLabel, continuousASRTimeoutInMS, sttVendorUtteranceEndMs, sttVendorEndpointing } =
    settings;
  const opening = {
    type: 'start',
    language: settings.sttLanguage,
    encoding: 'linear16',
    sampleRate: 8_000,
    channels: 1,
    interim: settings.interim ?? true,
    // JSON omits undefined fields.
    label: sttLabel,
    continuousASRTimeoutInMS,
    utteranceEndMs: sttVendorUtteranceEndMs,
    endpointingMs: sttVendorEndpointing,
    parameters: provider.parameters,
  };
  return {
    url: provider.url,
    headers: provider.apiKey === undefined ? {} : { authorization: `Bearer ${provider.apiKey}` },
    opening: JSON.stringify(opening),
    closing: JSON.stringify({ type: 'stop' }),
    read: readMessage,
  };
}

function readMessage(text: string): Message {
  const message = parseObject(text);
  if (message === undefined) return { kind: 'rubbish' };
  if (message['type'] === 'error') return { kind: 'error' };
  const { transcript, until_ms: until } = message as { transcript?: unknown; until_ms?: unknown };
  if (transcript === undefined) return { kind: 'other' };
  if (typeof transcript !== 'string') return { kind: 'rubbish' };
  const untilMs = milliseconds(until);
  return {
    kind: 'said',
    transcript,
    isFinal: message['is_final'] === true,
    ...(untilMs === undefined ? {} : { untilMs }),
  };
}
