// Campaigns whose calls wait because too many were abandoned.

export type HeldCampaign = {
  readonly accountId: string;
  readonly campaign: string;
  readonly since: Date;
};

/** The result of looking at all held campaigns. */
export type CampaignReview = {
  readonly held: readonly HeldCampaign[];
  /** Campaigns whose hold the review has ended, because no call waits any more. */
  readonly freed: readonly HeldCampaign[];
};

/** Says on NATS that a campaign's calls wait, or that they no longer do. */
export type CampaignAlert = {
  readonly id: string;
  readonly type: 'alert';
  readonly time: string;
  readonly accountId: string;
  readonly data: {
    readonly alert: 'campaign-held' | 'campaign-released';
    readonly campaign: string;
    readonly heldSince: string;
  };
};
