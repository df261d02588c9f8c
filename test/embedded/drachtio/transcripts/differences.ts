// Where the embedded engine speaks differently from the recorded drachtio-server on purpose. Each entry is matched against
// what the replay finds: a difference that is not listed fails, and so does a listed one that no longer occurs.
// src/embedded/drachtio/DIFFERENCES.md tells the same in prose.

export type DeliberateDifference = {
  /** The recording, or every one of them. */
  readonly scenario: string | 'all';
  /** The message, by its label: `*` stands for any run of characters. */
  readonly message: string;
  readonly aspect: string;
  readonly reason: string;
};

export const DELIBERATE_DIFFERENCES: readonly DeliberateDifference[] = [];
