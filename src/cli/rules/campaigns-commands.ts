// Implements `offhook campaigns`, which shows how many of the campaigns' calls were abandoned.

import { type AppOptions, withGateway } from '../app-session.ts';
import type { CliContext } from '../cli-context.ts';
import type { CampaignsClient, CampaignView, CampaignWindowView } from '../gateway-client.ts';

export type CampaignOptions = AppOptions & { readonly json?: boolean };

export async function listCampaigns(context: CliContext, options: CampaignOptions): Promise<void> {
  await withGateway(context, options, async (client) => {
    let count = 0;
    for await (const campaign of everyCampaign(client.campaigns)) {
      context.print(options.json === true ? JSON.stringify(campaign) : formatCampaign(campaign));
      count += 1;
    }
    if (count === 0) context.note('No campaign has called under a rule set.');
  });
}

async function* everyCampaign(client: CampaignsClient): AsyncGenerator<CampaignView> {
  let cursor: string | undefined;
  do {
    const page = await client.list(cursor === undefined ? {} : { cursor });
    yield* page.campaigns;
    cursor = page.nextCursor;
  } while (cursor !== undefined);
}

export async function showCampaign(
  context: CliContext,
  name: string,
  options: CampaignOptions,
): Promise<void> {
  await withGateway(context, options, async ({ campaigns }) => {
    const campaign = await campaigns.find(name);
    if (options.json === true) {
      context.print(JSON.stringify(campaign));
      return;
    }
    context.print(formatCampaign(campaign));
    for (const window of campaign.ftc.windows) context.print(`  ftc    ${formatWindow(window)}`);
    for (const window of campaign.ofcom.windows) context.print(`  ofcom  ${formatWindow(window)}`);
  });
}

/** E.g. `autumn-offer  default  may call  8 of 410 abandoned, 1.95 % (ftc)` */
function formatCampaign({ campaign, ruleSet, held, ftc }: CampaignView): string {
  const state = held === null ? 'may call' : `held, next probe ${held.until}`;
  const month = ftc.windows.at(-1);
  const share =
    month === undefined
      ? 'no calls yet'
      : `${month.abandoned} of ${month.answeredByPerson} abandoned, ${percent(month.percent)} (ftc)`;
  return `${campaign}  ${ruleSet}  ${state}  ${share}`;
}

function formatWindow(window: CampaignWindowView): string {
  const { from, answeredByPerson, connected, abandoned, estimate, upper95 } = window;
  const estimated = estimate === undefined ? '' : `, estimate ${estimate.toFixed(1)}`;
  return `${from}  people ${answeredByPerson}, connected ${connected}, abandoned ${abandoned}${estimated}: ${percent(window.percent)}, upper bound ${percent(upper95)} (95 % confidence)`;
}

function percent(value: number): string {
  return `${value.toFixed(2)} %`;
}
