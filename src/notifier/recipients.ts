// Where a call's notifications go. Implemented over the calls table; no part of any event, because the headers are secrets.

export type Recipient = {
  readonly appId: string;
  /** Absent: nobody is to be notified. */
  readonly notifyUrl?: string;
  readonly notifyHeaders?: Readonly<Record<string, string>>;
};

/** Calls that are unknown are absent. */
export type RecipientLookup = (
  callIds: readonly string[],
) => Promise<ReadonlyMap<string, Recipient>>;

/** Live webhook secrets of an app, `whsec_…`. Every attempt asks: cached by whoever answers. */
export type SecretLookup = (appId: string) => Promise<readonly string[]>;
