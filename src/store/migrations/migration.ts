/** One step forward. Never changed once released, never undone: a mistake is put right by the next one. */
export type Migration = { readonly version: number; readonly name: string; readonly sql: string };
