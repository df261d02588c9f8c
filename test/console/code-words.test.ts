// Each code that the gateway can emit has words on the pages. The lists of codes are those of the
// source, so a new code without words fails here.

import { constants } from 'node:os';
import { errors } from 'undici';
import { describe, expect, test } from 'vitest';
import { connectionKinds } from '../../src/calls/abandonment/abandonment.ts';
import { machineDetectionModes } from '../../src/calls/call-types.ts';
import { callEventTypes } from '../../src/calls/contract/call-event.ts';
import {
  callFaults,
  callOutcomes,
  playbackEndReasons,
  playbackSources,
  reasonCodes,
} from '../../src/calls/contract/call-words.ts';
import { exampleEvent } from '../../src/calls/contract/event-examples.ts';
import { amdEventNames, transcriptionStates } from '../../src/calls/detection/amd-event.ts';
import {
  detectionFaults,
  detectionStops,
  greetingReasons,
  verdictReasons,
} from '../../src/calls/detection/amd-reasons.ts';
import { optOutWays } from '../../src/calls/opt-out/opt-outs.ts';
import {
  recordingBegins,
  recordingFailures,
  recordingPauses,
  recordingStops,
} from '../../src/calls/recording/recording.ts';
import { streamFaults, streamStops } from '../../src/calls/stream/stream-reasons.ts';
import { deliveryFailures } from '../../src/notifier/delivery-rules.ts';

type UndiciError = new (...details: unknown[]) => { readonly code?: string };
type Words = Readonly<Record<string, unknown>>;
type Amd = Readonly<Record<string, unknown>>;
type CodeWords = Readonly<Record<string, Words>> & {
  readonly amdReasonWords: (amd: Amd) => string;
  readonly connectionWords: (code: string) => string;
  readonly httpStatusWords: (status: number) => string;
  readonly streamReasonWords: (reason: string) => string;
};
type EventPage = {
  readonly eventNames: Words;
  readonly eventWords: (
    event: object,
    line?: string,
  ) => { readonly name: string; readonly note: string; readonly noteCode?: string };
};

const load = async (name: string): Promise<unknown> =>
  await import(new URL(`../../src/console/page/${name}`, import.meta.url).href);
const words = (await load('code-words.js')) as CodeWords;
const events = (await load('event-words.js')) as EventPage;

describe('words for codes', () => {
  test.each([
    ['verdictReasonWords', verdictReasons],
    ['detectionFaultWords', detectionFaults],
    ['greetingReasonWords', greetingReasons],
    ['detectionStopWords', detectionStops],
    ['detectionModeWords', machineDetectionModes],
    ['transcriptionWords', transcriptionStates],
    ['missingWords', connectionKinds],
    ['optOutWords', optOutWays],
    ['soundWords', playbackSources],
    ['soundEndWords', playbackEndReasons],
    ['recordingBeginWords', recordingBegins],
    ['recordingPauseWords', recordingPauses],
    ['recordingStopWords', recordingStops],
    ['recordingFailureWords', recordingFailures],
    ['outcomeWords', callOutcomes],
    ['reasonCodeWords', reasonCodes],
    ['faultWords', callFaults],
    ['streamStopWords', streamStops],
    ['streamFaultWords', streamFaults],
    ['deliveryFailureWords', deliveryFailures],
  ] as const)('%s has words for every code, and for no other', (list, codes) => {
    expect(Object.keys(words[list] ?? {}).sort()).toEqual([...codes].sort());
  });

  test('each event has a name, and words for its codes', () => {
    expect(Object.keys(events.eventNames).sort()).toEqual([...callEventTypes].sort());
    for (const type of callEventTypes) {
      const { name, note } = events.eventWords(exampleEvent(type), 'a line');
      expect([name, note]).not.toContain(type);
      expect(`${name} ${note}`).not.toMatch(/undefined|NaN|\[object/);
    }
  });

  test('a reason of detection is explained by its evidence, and without any', () => {
    const spoken = { words: 11, speechMs: 3_800, spanMs: 3_900, pauseMs: 1_200, elapsedMs: 4_100 };
    const tone = { hz: 1_000.4, ms: 210 };
    const say = (event: string, reason: string, more: Amd = spoken) =>
      words.amdReasonWords({ event, reason, ...more });

    expect(say('amd_machine_detected', 'dense-speech')).toBe('11 words without a pause');
    expect(say('amd_machine_detected', 'dense-speech-transcription-late')).toBe(
      '11 words without a pause',
    );
    expect(say('amd_human_detected', 'short-greeting', { words: 1 })).toBe(
      'a short greeting of 1 word',
    );
    expect(say('amd_machine_detected', 'tone', { tone })).toBe('a beep of 1000 Hz');
    expect(say('amd_tone_detected', 'beep', { tone })).toBe('a beep of 1000 Hz, 210 ms');
    expect(say('amd_stopped', 'tone')).toBe('the beep was heard');
    expect(say('amd_stopped', 'media-lost')).toBe('the call lost its audio');
    expect(say('amd_error', 'audio-unheard', { unheardMs: 1_200 })).toContain('did not hear 1.2 s');
    expect(say('amd_error', 'of-tomorrow')).toBe('of-tomorrow');
    const all = [...verdictReasons, ...detectionFaults, ...greetingReasons, ...detectionStops];
    for (const event of amdEventNames)
      for (const reason of all)
        expect(say(event, reason, {})).not.toMatch(/undefined|NaN| {2}|constructor/);
  });

  test('errors of connections have words, and text that is no code stays', () => {
    const network = Object.keys(constants.errno).filter((code) =>
      /^E(CONN|HOST|NET|PIPE|TIMED|ADDR|PROTO$)/.test(code),
    );
    const undici = Object.values(errors).flatMap((error) => {
      const { code } = new (error as unknown as UndiciError)('', 0, { headers: {} });
      return code === undefined ? [] : [code];
    });
    const tls = [
      'CERT_HAS_EXPIRED',
      'ERR_TLS_CERT_ALTNAME_INVALID',
      'ERR_SSL_WRONG_VERSION_NUMBER',
    ];
    expect(network.length).toBeGreaterThan(10);
    expect(undici.length).toBeGreaterThan(5);
    for (const code of [...network, ...undici, ...tls, 'ENOTFOUND', 'HPE_INVALID_CONSTANT'])
      expect(words.connectionWords(code)).toMatch(/^(?!.*_)[a-zTH]/);
    expect(words.connectionWords('ECONNREFUSED')).toBe('nothing listens at its address');
    for (const text of ['no response within 10000 ms', '<b>', 'constructor'])
      expect(words.connectionWords(text)).toBe(text);
  });

  test('statuses and close codes have words', () => {
    for (const status of [101, 200, 302, 400, 404, 410, 418, 429, 500, 503, 599]) {
      expect(words.httpStatusWords(status)).toMatch(/^(it|a) /);
      expect(words.streamReasonWords(`status-${status}`)).toBe(words.httpStatusWords(status));
    }
    for (const code of [1000, 1006, 1012, 4000])
      expect(words.streamReasonWords(`closed-${code}`)).toMatch(/^(it|the connection) /);
    expect(words.streamReasonWords('ECONNREFUSED')).toBe('nothing listens at its address');
  });
});
