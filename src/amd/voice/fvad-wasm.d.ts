// What we use of @echogarden/fvad-wasm, which ships no types: libfvad as emscripten exports it. Pointers are numbers.

declare module '@echogarden/fvad-wasm' {
  export type FvadModule = {
    /** Replaced when the memory grows: read it anew for each access. */
    readonly HEAP16: Int16Array;
    _malloc(bytes: number): number;
    _free(pointer: number): void;
    /** 0 when there is no memory. */
    _fvad_new(): number;
    _fvad_free(instance: number): void;
    _fvad_set_mode(instance: number, mode: number): number;
    _fvad_set_sample_rate(instance: number, sampleRateHz: number): number;
    /** 1 voice, 0 none, -1 wrong length. */
    _fvad_process(instance: number, samples: number, length: number): number;
  };
  export default function load(): Promise<FvadModule>;
}
