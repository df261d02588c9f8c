// What a person hears while the phone of a second leg rings without audio of its own: the ringback tone of North America
// (440 and 480 Hz, 2 s on, 4 s off; ITU-T E.180 Supplement 2), in µ-law.

import { encodeMulaw, silenceByte } from '../g711.ts';

const sampleRateHz = 8_000;
/** Both tones together repeat after 1/40 s. */
const periodSamples = sampleRateHz / 40;
const onSamples = 2 * sampleRateHz;
const cycleSamples = 6 * sampleRateHz;
/** -19 dBm0 each, as exchanges send it; a sine of full scale is 3 dBm0. */
const amplitude = 32_124 * 10 ** ((-19 - 3.17) / 20);

const period = Uint8Array.from({ length: periodSamples }, (_, index) => {
  const turn = (2 * Math.PI * index) / sampleRateHz;
  return encodeMulaw(Math.round(amplitude * (Math.sin(440 * turn) + Math.sin(480 * turn))));
});

export class Ringback {
  #at = 0;

  /** The next bytes of it. */
  read(packet: Uint8Array, start: number, end: number): void {
    for (let index = start; index < end; index += 1) {
      packet[index] =
        this.#at < onSamples ? (period[this.#at % periodSamples] as number) : silenceByte.PCMU;
      this.#at = (this.#at + 1) % cycleSamples;
    }
  }
}
