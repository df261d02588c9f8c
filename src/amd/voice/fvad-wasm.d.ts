// Types for the part of @echogarden/fvad-wasm that we use, because the package doesn't include any
// types. It's libfvad as exported by Emscripten, so pointers are numbers.

declare module '@echogarden/fvad-wasm' {
  export type FvadModule = {
    /** Replaced when the memory grows, so don't keep a reference to this array. */
    readonly HEAP16: Int16Array;
    _malloc(bytes: number): number;
    _free(pointer: number): void;
    /** Returns 0 if out of memory. */
    _fvad_new(): number;
    _fvad_free(instance: number): void;
    _fvad_set_mode(instance: number, mode: number): number;
    _fvad_set_sample_rate(instance: number, sampleRateHz: number): number;
    /** Returns 1 for voice, 0 for no voice, -1 for a wrong length. */
    _fvad_process(instance: number, samples: number, length: number): number;
  };
  export default function load(): Promise<FvadModule>;
}
