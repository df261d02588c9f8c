// The protocols that a provider may speak.

import type { SpeechToTextSettings } from '../../calls/call-types.ts';
import { deepgramProtocol } from './deepgram.ts';
import { genericProtocol } from './generic.ts';
import type { Protocol } from './protocol.ts';
import type { SpeechToTextProvider } from './providers.ts';
import { sherpaOnnxProtocol } from './sherpa-onnx.ts';
import { voskProtocol } from './vosk.ts';

export function protocolFor(
  provider: SpeechToTextProvider,
  settings: SpeechToTextSettings,
): Protocol {
  switch (provider.kind) {
    case 'deepgram':
      return deepgramProtocol(provider, settings);
    case 'websocket':
      return genericProtocol(provider, settings);
    case 'vosk':
      return voskProtocol(provider, settings);
    case 'sherpa-onnx':
      return sherpaOnnxProtocol(provider, settings);
  }
}
