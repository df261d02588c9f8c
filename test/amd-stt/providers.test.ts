import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { loadProviders } from '../../src/amd/stt/providers.ts';
import { readSecrets } from '../../src/config.ts';

const secrets = (names: readonly string[]) =>
  readSecrets(names, { DEEPGRAM_API_KEY: 'hush', EMPTY: '' });

function load(text: string) {
  return loadProviders({ name: 'stt-providers.yaml', text }, secrets);
}

const withProvider = (text: string) => `providers:\n  acme:\n    ${text}\n`;

describe('the file of speech-to-text providers', () => {
  test('the example in the repository is valid', async () => {
    const path = new URL('../../sip-config/stt-providers.example.yaml', import.meta.url);

    expect([...load(await readFile(path, 'utf8'))]).toEqual([
      [
        'deepgram',
        {
          kind: 'deepgram',
          url: 'wss://api.deepgram.com/v1/listen',
          apiKey: 'hush',
          parameters: { model: 'nova-3' },
        },
      ],
      ['our-engine', { kind: 'websocket', url: 'ws://127.0.0.1:2700/', parameters: {} }],
      ['vosk', { kind: 'vosk', url: 'ws://vosk:2700/', parameters: { words: 'true' } }],
      ['sherpa', { kind: 'sherpa-onnx', url: 'ws://sherpa:6006/', parameters: {} }],
    ]);
  });

  test.each([
    ['YAML that cannot be read', 'providers: [', /^stt-providers\.yaml:\d+: /],
    ['an empty file', '', /file: /],
    ['an unknown kind', withProvider('kind: morse'), /:3: providers\.acme\.kind: /],
    [
      'Offhook’s own protocol without a URL',
      withProvider('kind: websocket'),
      /providers\.acme\.url: /,
    ],
    ['Vosk without a URL', withProvider('kind: vosk'), /providers\.acme\.url: /],
    [
      'a parameter for sherpa-onnx, which takes none',
      withProvider('kind: sherpa-onnx\n    url: ws://127.0.0.1:1\n    parameters: { model: x }'),
      /:5: providers\.acme\.parameters: /,
    ],
    [
      'a URL that is not a WebSocket URL',
      withProvider('kind: deepgram\n    url: https://x.example'),
      /:4: providers\.acme\.url: must be a ws or wss URL/,
    ],
    [
      'a password in the URL',
      withProvider('kind: deepgram\n    url: wss://a:b@x.example'),
      /must not hold a user, a password or a fragment/,
    ],
    [
      'a key in the file',
      withProvider('kind: deepgram\n    apiKey: hush'),
      /:\d+: providers\.acme: .*apiKey/,
    ],
    [
      'a key that is not set',
      withProvider('kind: deepgram\n    apiKeyEnv: EMPTY'),
      /:4: providers\.acme\.apiKeyEnv: the variable EMPTY is not set/,
    ],
    [
      'a parameter that the call decides',
      withProvider('kind: deepgram\n    parameters: { language: de }'),
      /is set by the gateway itself/,
    ],
    [
      'a name that no request can contain',
      'providers:\n  "a b":\n    kind: deepgram\n',
      /a b: up to 64/,
    ],
  ])('%s is rejected with the line and the field', (_name, text, message) => {
    expect(() => load(text)).toThrow(message);
  });
});
