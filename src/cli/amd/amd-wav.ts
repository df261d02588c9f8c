// Reads one channel of a WAV file at the detector's sample rate.

import { resample } from '../../sounds/resample.ts';
import { openWav, type WavFile } from '../../sounds/wav-file.ts';

export type Recording = Pick<WavFile, 'codec' | 'sampleRateHz' | 'channels'> & {
  /** Samples at 8 kHz, regardless of the file's own rate. */
  readonly samples: Int16Array;
};

type RecordingResult =
  | { readonly kind: 'recording'; readonly recording: Recording }
  | { readonly kind: 'unreadable'; readonly problem: string };

const detectorRateHz = 8_000;
/** No recording of a telephone call has a higher rate. */
const maxRateHz = 192_000;
/**
 * Detection never runs this long (two 120 s timers and a 60 s greeting), so we ignore the rest of
 * the file.
 */
export const maxRecordingMs = 300_000;

/** Reads a channel. Channel numbers start at 1. */
export function readWav(file: Buffer, channel: number): RecordingResult {
  const opened = openWav(file, { maxRateHz });
  if (!opened.ok) return { kind: 'unreadable', problem: opened.problem };
  const { codec, channels, sampleRateHz, length, sampleAt } = opened.wav;
  if (channel > channels) {
    return { kind: 'unreadable', problem: `no channel ${channel}; it has ${channels}` };
  }
  const most = Math.ceil((maxRecordingMs / 1_000) * sampleRateHz);
  const samples = new Int16Array(Math.min(length, most));
  for (let index = 0; index < samples.length; index += 1) {
    samples[index] = sampleAt(index, channel - 1);
  }
  return {
    kind: 'recording',
    recording: {
      samples: resample(samples, sampleRateHz, detectorRateHz),
      codec,
      sampleRateHz,
      channels,
    },
  };
}
