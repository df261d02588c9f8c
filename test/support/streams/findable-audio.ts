// Audio that a test can find to the byte among silence, however it was cut and whenever it was
// played.

const silence = 0xff;

/** Returns µ-law audio that never contains the byte of silence. Each seed gives different audio. */
export function pattern(bytes: number, seed: number): Buffer {
  return Buffer.from(Array.from({ length: bytes }, (_, index) => (index * 7 + seed) % silence));
}

/** Returns the audio without its silence. */
export function withoutSilence(heard: Uint8Array): Buffer {
  return Buffer.from(heard.filter((byte) => byte !== silence));
}
