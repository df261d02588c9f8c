/** One step forward. Never changed once released, never undone: a mistake is put right by the next one. */
export type Migration = {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
  /** On tables that may be large and are written meanwhile. Nothing may need them to be right: they come after the step. */
  readonly indexes?: readonly LateIndex[];
};

export type LateIndex = {
  readonly name: string;
  /** `table (columns) where …` */
  readonly on: string;
};
