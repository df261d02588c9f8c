// sherpa-onnx's streaming protocol (k2-fsa/sherpa-onnx, sherpa-onnx-online-websocket-server and its Python streaming_server.py):
// binary messages of 32-bit floats at the model's 16 kHz, `Done` at the end; results as JSON with the text of a segment so far.
// The language is the model's.

import type { SpeechToTextSettings } from '../../calls/call-types.ts';
import { type Message, type Protocol, parseObject } from './protocol.ts';
import type { SpeechToTextProvider } from './providers.ts';
import { createUpsampler } from './upsampler.ts';

/** Of a segment that ended without saying so: what a greeting of a minute has, and more. */
const longestPrefix = 4_000;

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

/** Later servers say `is_final` of a segment's last result; the others only go on with the next segment. */
function createReader(): (text: string) => Message {
  let prefix = '';
  let segment = 0;
  let latest = '';

  function result(said: string, ofSegment: number, isFinal: boolean): Message {
    if (ofSegment !== segment) prefix = `${prefix} ${latest}`.trim().slice(0, longestPrefix);
    segment = ofSegment;
    latest = isFinal ? '' : said;
    const transcript = `${prefix} ${said}`.trim();
    if (isFinal) prefix = '';
    return { kind: 'said', transcript, isFinal };
  }

  return (text) => {
    // The server's last word.
    if (text === 'Done!') return { kind: 'other' };
    const message = parseObject(text);
    if (message === undefined) return { kind: 'rubbish' };
    const { text: said, segment: ofSegment = segment, is_final: isFinal } = message;
    if (said === undefined) return { kind: 'other' };
    if (typeof said !== 'string' || typeof ofSegment !== 'number') return { kind: 'rubbish' };
    return result(said, ofSegment, isFinal === true);
  };
}

function littleEndianFloats(samples: Float32Array): Buffer {
  const bytes = Buffer.alloc(samples.length * Float32Array.BYTES_PER_ELEMENT);
  samples.forEach((sample, index) => {
    bytes.writeFloatLE(sample, index * Float32Array.BYTES_PER_ELEMENT);
  });
  return bytes;
}
