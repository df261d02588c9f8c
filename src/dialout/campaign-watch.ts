// Reviews held campaigns, and says in alerts and metrics what is held. Every node that sees a held
// campaign publishes the alert under the same id, so that the hold is stated even if a node dies.

import type { CampaignAlert, CampaignReview, HeldCampaign } from '../calls/rules/held-campaign.ts';
import type { Logger } from '../lib/logger.ts';

export type CampaignWatchPorts = {
  readonly review: (now: Date) => Promise<CampaignReview>;
  readonly publish: (alert: CampaignAlert) => Promise<void>;
  /** The number of held campaigns, for the metrics. */
  readonly onHeld: (count: number) => void;
  readonly now: () => Date;
  readonly logger: Logger;
};

/**
 * Bounds the alerts that wait for NATS. An outage of hours leaves that many holds only if hundreds
 * of campaigns break at once. Further alerts are logged.
 */
const maxPending = 1_000;

export class CampaignWatch {
  readonly #ports: CampaignWatchPorts;
  /** The alerts that the current holds have caused, by id. */
  #stated = new Set<string>();
  readonly #pending = new Map<string, CampaignAlert>();

  constructor(ports: CampaignWatchPorts) {
    this.#ports = ports;
  }

  /** @returns true if any campaign is held, or if an alert has yet to be published */
  async review(): Promise<boolean> {
    const { review, now, onHeld } = this.#ports;
    const { held, freed } = await review(now());
    onHeld(held.length);
    const alerts = held.map((campaign) => alertOf(campaign, 'campaign-held', now()));
    for (const alert of alerts) if (!this.#stated.has(alert.id)) this.#queue(alert);
    this.#stated = new Set(alerts.map(({ id }) => id));
    for (const campaign of freed) this.#queue(alertOf(campaign, 'campaign-released', now()));
    await this.#publish();
    return held.length + this.#pending.size > 0;
  }

  #queue(alert: CampaignAlert): void {
    const { accountId, data } = alert;
    this.#ports.logger.warn(
      { accountId, campaign: data.campaign, heldSince: data.heldSince },
      data.alert === 'campaign-held'
        ? 'a campaign is held: too many of its calls were abandoned'
        : 'a campaign is no longer held',
    );
    if (this.#pending.size < maxPending) this.#pending.set(alert.id, alert);
  }

  /** Publishes what is pending, in order. What NATS doesn't accept stays for the next review. */
  async #publish(): Promise<void> {
    for (const [id, alert] of this.#pending) {
      try {
        await this.#ports.publish(alert);
      } catch (error) {
        this.#ports.logger.warn({ err: error }, 'an alert about a campaign was not published');
        return;
      }
      this.#pending.delete(id);
    }
  }
}

function alertOf(
  { accountId, campaign, since }: HeldCampaign,
  alert: CampaignAlert['data']['alert'],
  now: Date,
): CampaignAlert {
  const heldSince = since.toISOString();
  return {
    id: `${alert} ${accountId} ${campaign} ${heldSince}`,
    type: 'alert',
    time: now.toISOString(),
    accountId,
    data: { alert, campaign, heldSince },
  };
}
