// sherpa-onnx's streaming protocol (k2-fsa/sherpa-onnx, sherpa-onnx-online-websocket-server and its
// Python streaming_server.py). We send audio as binary messages of 32-bit floats at 16 kHz, the
// model's sample rate, followed by `Done`. The JSON results contain a segment's text so far. The
// language is a property of the model.

import type { SpeechToTextSettings } from '../../calls/call-types.ts';
import { type Message, type Protocol, parseObject } from './protocol.ts';
import type { SpeechToTextProvider } from './providers.ts';
import { createUpsampler } from './upsampler.ts';

/**
 * Maximum length of the text that we keep from segments that ended without a final result. A
 * one-minute greeting is shorter than that.
 */
const maxPrefixCharacters = 4_000;

export function sherpaOnnxProtocol(
  provider: SpeechToTextProvider,
  _settings: SpeechToTextSettings,
): Protocol {
  const upsample = createUpsampler();
  return {
    url: provider.url,
    headers: provider.apiKey === undefined ? {} : { authorization: `Bearer ${provider.apiKey}` },
    closing: 'Done',
    encode: (chunk) => littleEndianFloats(upsample(chunk)),
    read: createReader(),
  };
}

/**
 * Newer servers set `is_final` in a segment's last result. Older servers simply continue with the
 * next segment.
 */
function createReader(): (text: string) => Message {
  let prefix = '';
  let segment = 0;
  let latest = '';

  function result(said: string, resultSegment: number, isFinal: boolean): Message {
    if (resultSegment !== segment)
      prefix = `${prefix} ${latest}`.trim().slice(0, maxPrefixCharacters);
    segment = resultSegment;
    latest = isFinal ? '' : said;
    const transcript = `${prefix} ${said}`.trim();
    if (isFinal) prefix = '';
    return { kind: 'said', transcript, isFinal };
  }

  return (text) => {
    // The last message from the server.
    if (text === 'Done!') return { kind: 'other' };
    const message = parseObject(text);
    if (message === undefined) return { kind: 'rubbish' };
    const { text: said, segment: resultSegment = segment, is_final: isFinal } = message;
    if (said === undefined) return { kind: 'other' };
    if (typeof said !== 'string' || typeof resultSegment !== 'number') return { kind: 'rubbish' };
    return result(said, resultSegment, isFinal === true);
  };
}

function littleEndianFloats(samples: Float32Array): Buffer {
  const bytes = Buffer.alloc(samples.length * Float32Array.BYTES_PER_ELEMENT);
  samples.forEach((sample, index) => {
    bytes.writeFloatLE(sample, index * Float32Array.BYTES_PER_ELEMENT);
  });
  return bytes;
}
