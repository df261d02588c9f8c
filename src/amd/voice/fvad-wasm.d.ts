// The used part of @echogarden/fvad-wasm, which ships no types: libfvad as Emscripten exports it.
// Pointers are numbers.

declare module '@echogarden/fvad-wasm' {
  export type FvadModule = {
    /** Replaced when the memory grows, so read it anew for each access. */
    readonly HEAP16: Int16Array;
    _malloc(bytes: number): number;
    _free(pointer: number): void;
    /** Returns 0 if there is no memory. */
    _fvad_new(): number;
    _fvad_free(instance: number): void;
    _fvad_set_mode(instance: number, mode: number): number;
    _fvad_set_sample_rate(instance: number, sampleRateHz: number): number;
    /** Returns 1 for voice, 0 for no voice, -1 for a wrong length. */
    _fvad_process(instance: number, samples: number, length: number): number;
  };
  export default function load(): Promise<FvadModule>;
}
