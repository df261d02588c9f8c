// Keys that a call presses: what is asked of the media worker, and what it tells of them. Digits are personal: in events for those
// who may see the call, never in a log.

export type Keys = {
  /** Of the command. Left out: the other end of a bridge has pressed them, and nothing is told of them. */
  readonly commandId?: string;
  /** `0-9A-D*#`, and `w`: half a second in which none is pressed. */
  readonly digits: string;
  /** Of each. */
  readonly durationMs: number;
};

/** Told once of all that were asked for together. */
export type KeysSent = {
  readonly commandId: string;
  /** Those that went out. */
  readonly digits: string;
  /** Every one of them. */
  readonly complete: boolean;
};
