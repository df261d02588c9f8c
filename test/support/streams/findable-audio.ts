// Audio that is found again to the byte among silence, however it was cut and whenever it was played.

const silence = 0xff;

/** µ-law that is nowhere the byte of silence; another with another seed. */
export function pattern(bytes: number, seed: number): Buffer {
  return Buffer.from(Array.from({ length: bytes }, (_, index) => (index * 7 + seed) % silence));
}

/** What was said in it. */
export function withoutSilence(heard: Uint8Array): Buffer {
  return Buffer.from(heard.filter((byte) => byte !== silence));
}
