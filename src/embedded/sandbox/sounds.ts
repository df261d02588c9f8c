// Recordings and tones that the sandbox's callees play, divided into frames that are ready to be
// sent. Each sound is encoded once per codec.

import { type Codec, encode, silenceByte } from '../../media/g711.ts';
import { joined, silence, tone } from './tones.ts';
import { readMulawWav, recordingUrl } from './wav-file.ts';

export const frameMs = 20;
export const frameSamples = 160;

export const soundNames = [
  'hello',
  'helloSecond',
  'name',
  'voicemail',
  'voicemailTwice',
  'announcement',
  'screenerQuestion',
  'interruption',
  'answer',
  'fax',
  'silence',
  'ringback',
] as const;
export type SoundName = (typeof soundNames)[number];

export type Sound = {
  readonly samples: Int16Array;
  /** True if the sound repeats. Otherwise, silence follows. */
  readonly loops: boolean;
};

export type SoundLibrary = {
  /** Returns the 20 ms payload of frame `index`, counted from the start of the sound. */
  frame(name: SoundName, index: number, codec: Codec): Uint8Array;
  /** Length of the sound, without repetitions, rounded up to whole frames. */
  lengthMs(name: SoundName): number;
};

/** @throws Error if a recording is missing */
export function createSounds(): Readonly<Record<SoundName, Sound>> {
  const recording = (name: string) => readMulawWav(recordingUrl(name));
  const once = (...parts: Int16Array[]): Sound => ({ samples: joined(parts), loops: false });
  // People need a moment between accepting the call and saying their first word.
  const pickUp = silence(400);
  return {
    hello: once(pickUp, recording('person-hello')),
    helloSecond: once(pickUp, recording('person-hello-second')),
    name: once(pickUp, recording('person-name')),
    voicemail: once(pickUp, recording('voicemail-greeting'), silence(400), tone([1_000], 500, -9)),
    voicemailTwice: once(
      ...[pickUp, recording('voicemail-greeting'), silence(400), tone([1_000], 500, -9)],
      ...[silence(1_500), tone([1_000], 500, -9)],
    ),
    screenerQuestion: once(pickUp, recording('screener-question')),
    announcement: once(pickUp, recording('announcement')),
    interruption: once(recording('talker-interruption')),
    answer: once(recording('talker-answer')),
    // T.30 CED, i.e. 2100 Hz for 2.6 to 4 s.
    fax: once(pickUp, tone([2_100], 3_000, -10)),
    silence: once(),
    // North American ringback, i.e. 440 and 480 Hz for 2 s in every 6 s.
    ringback: { samples: joined([tone([440, 480], 2_000, -19), silence(4_000)]), loops: true },
  };
}

export function createSoundLibrary(sounds = createSounds()): SoundLibrary {
  const coded = new Map<string, Uint8Array>();
  const quiet: Readonly<Record<Codec, Uint8Array>> = {
    PCMU: new Uint8Array(frameSamples).fill(silenceByte.PCMU),
    PCMA: new Uint8Array(frameSamples).fill(silenceByte.PCMA),
  };

  function codedSound(name: SoundName, codec: Codec): Uint8Array {
    const key = `${name} ${codec}`;
    let payload = coded.get(key);
    if (payload === undefined) {
      payload = encode(codec, wholeFrames(sounds[name].samples));
      coded.set(key, payload);
    }
    return payload;
  }

  return {
    lengthMs: (name) => (codedSound(name, 'PCMU').length / frameSamples) * frameMs,
    frame(name, index, codec) {
      const payload = codedSound(name, codec);
      const frames = payload.length / frameSamples;
      if (!sounds[name].loops && index >= frames) return quiet[codec];
      const at = (index % frames) * frameSamples;
      return payload.subarray(at, at + frameSamples);
    },
  };
}

function wholeFrames(samples: Int16Array): Int16Array {
  const whole = new Int16Array(Math.ceil(samples.length / frameSamples) * frameSamples);
  whole.set(samples);
  return whole;
}
