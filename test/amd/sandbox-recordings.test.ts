// The first words of the sandbox's callees, through both laws of G.711 as in a call.

import { describe, expect, test } from 'vitest';
import type { AmdEventName } from '../../src/calls/detection/amd-event.ts';
import { createSounds, type SoundName } from '../../src/embedded/sandbox/sounds.ts';
import { type Codec, decodeTable, encode } from '../../src/media/g711.ts';
import { listen, names } from './listen.ts';

const sounds = createSounds();
const person: AmdEventName[] = ['amd_human_detected', 'amd_stopped'];
const expected: Readonly<Partial<Record<SoundName, readonly AmdEventName[]>>> = {
  hello: person,
  helloSecond: person,
  name: person,
  voicemail: [
    'amd_machine_detected',
    'amd_machine_stopped_speaking',
    'amd_tone_detected',
    'amd_stopped',
  ],
  announcement: ['amd_machine_detected', 'amd_machine_stopped_speaking', 'amd_stopped'],
  fax: ['amd_machine_detected', 'amd_stopped'],
  silence: ['amd_no_speech_detected', 'amd_stopped'],
  ringback: ['amd_no_speech_detected', 'amd_stopped'],
};

describe.each<Codec>(['PCMU', 'PCMA'])('sandbox recording in %s', (codec) => {
  test.each(Object.entries(expected))('%s', (name, events) => {
    const { samples } = sounds[name as SoundName];
    const coded = encode(codec, samples);
    const heard = Int16Array.from(coded, (byte) => decodeTable[codec][byte] ?? 0);

    expect(names(listen(heard))).toEqual(events);
  });
});
