// Shows the figures of the account's campaigns: who answered, who was abandoned, and what holds a
// campaign back.

import { z } from 'zod';
import type { MeterFormula } from '../../calls/abandonment/abandonment.ts';
import { timestamp } from '../../calls/contract/timestamp.ts';
import type { ApiInstance, Clients } from '../../http/http.ts';
import { badCursor, ProblemError } from '../../http/problem.ts';
import { authenticated, responses } from '../../http/route-schema.ts';
import { falseMachines, ftcShare, ofcomShare } from '../../rules/meter.ts';
import type { Campaign, CampaignWindow } from '../../store/rules/campaigns.ts';
import { campaignName } from '../dialout/dialout-schema.ts';
import type { ApiServices } from '../services.ts';

const share = z.number().min(0).max(100);
const count = z.number().int().min(0);

const windowSchema = z.object({
  from: timestamp,
  until: timestamp,
  answeredByPerson: count.describe(
    'calls whose final verdict is a person, or whose detection heard nobody, did not decide, or failed',
  ),
  abandoned: count.describe('of these, calls in which nobody was connected within two seconds'),
  connected: count.describe('of these, calls in which somebody was; the rest hung up first'),
  estimate: z
    .number()
    .min(0)
    .exactOptional()
    .describe('people whom detection took for machines; only in Ofcom’s formula, and if known'),
  percent: share.describe('the share of abandoned calls; 0 if no person answered'),
  upper95: share.describe('the 95 % upper bound of `percent`, by Wilson’s method'),
});

const falseMachineRate = z.object({ rate: z.number(), source: z.string() });

const campaignSchema = z
  .object({
    campaign: z.string(),
    ruleSet: z.string().describe('the rule set of its last call'),
    held: z
      .object({ since: timestamp, rule: z.literal('abandoned-rate'), until: timestamp })
      .nullable()
      .describe(
        'set while calls wait because the share of abandoned calls is too high. `until`: when the next probe may leave',
      ),
    ftc: z
      .object({ windows: z.array(windowSchema) })
      .describe(
        'abandoned calls / calls answered by a person, in 30 days from the campaign’s first call on, and in each 30 days after them',
      ),
    ofcom: z
      .object({
        falseMachineRate: falseMachineRate
          .nullable()
          .describe(
            'basis of `estimate`, from the rule set. If null, the estimate is missing, and the true share is higher',
          ),
        windows: z.array(windowSchema),
      })
      .describe(
        '(abandoned calls + estimate) / (abandoned calls + estimate + connected calls), in each calendar day of the United Kingdom',
      ),
  })
  .meta({ id: 'Campaign', examples: [exampleCampaign()] });

const campaignPage = z
  .object({
    campaigns: z.array(campaignSchema).describe('sorted by name'),
    nextCursor: z.string().exactOptional().describe('absent on the last page'),
  })
  .meta({ id: 'CampaignPage', examples: [{ campaigns: [exampleCampaign()] }] });

const pageQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(100).default(50).describe('campaigns in one page'),
  cursor: z.string().min(1).max(1_024).optional().describe('`nextCursor` of the previous page'),
});

const campaignParams = z.object({ campaign: campaignName });

const tags = ['rules'];
const access = { scope: 'Calling Rules' } as const;
const prefix = '/api/public/campaigns';

export type CampaignDependencies = {
  readonly services: Pick<ApiServices, 'campaigns'>;
  readonly clients: Clients;
};

export function registerCampaigns(
  server: ApiInstance,
  { services, clients }: CampaignDependencies,
): void {
  const { campaigns } = services;
  const onRequest = clients.require(access);

  server.route({
    method: 'GET',
    url: prefix,
    onRequest,
    schema: {
      operationId: 'listCampaigns',
      summary: 'List the account’s campaigns with their shares of abandoned calls',
      tags,
      querystring: pageQuery,
      response: responses('A page of campaigns', campaignPage, [400, 401, 403, 406]),
      ...authenticated,
    },
    handler: async (request) => {
      const { limit, cursor } = request.query;
      const after = cursor === undefined ? undefined : readCursor(cursor);
      const page = await campaigns.list(clients.appOf(request).accountId, {
        limit,
        ...(after === undefined ? {} : { after }),
      });
      return {
        campaigns: page.campaigns.map(bodyOf),
        ...(page.next === undefined ? {} : { nextCursor: writeCursor(page.next) }),
      };
    },
  });

  server.route({
    method: 'GET',
    url: `${prefix}/:campaign`,
    onRequest,
    schema: {
      operationId: 'getCampaign',
      summary: 'Read a campaign’s shares of abandoned calls',
      tags,
      params: campaignParams,
      response: responses('The campaign', campaignSchema, [400, 401, 403, 404, 406]),
      ...authenticated,
    },
    handler: async (request) => {
      const { accountId } = clients.appOf(request);
      const found = await campaigns.find(accountId, request.params.campaign);
      if (found === undefined) {
        throw new ProblemError('not-found', 'No call of this campaign was made under a rule set.');
      }
      return bodyOf(found);
    },
  });
}

function bodyOf({ campaign, ruleSet, held, falseMachineRate: rate, months, days }: Campaign) {
  return {
    campaign,
    ruleSet,
    held:
      held === undefined
        ? null
        : {
            since: held.since.toISOString(),
            rule: 'abandoned-rate' as const,
            until: held.until.toISOString(),
          },
    ftc: { windows: months.map((window) => windowOf(window, 'ftc')) },
    ofcom: {
      falseMachineRate: rate ?? null,
      windows: days.map((window) => windowOf(window, 'ofcom', rate?.rate)),
    },
  };
}

function windowOf(
  { from, until, ...tallies }: CampaignWindow,
  formula: MeterFormula,
  rate?: number,
) {
  const tally = tallies[formula];
  const estimate = rate === undefined ? undefined : falseMachines(tally.answeredByPerson, rate);
  const result = formula === 'ftc' ? ftcShare(tally) : ofcomShare(tally, estimate ?? 0);
  return {
    ...{ from: from.toISOString(), until: until.toISOString(), ...tally },
    ...(estimate === undefined ? {} : { estimate: rounded(estimate) }),
    ...{ percent: rounded(result.percent), upper95: rounded(result.upper95) },
  };
}

/** Shares are compared with limits such as 3.0 %, so three more digits are plenty. */
function rounded(value: number): number {
  return Math.round(value * 10_000) / 10_000;
}

function exampleCampaign() {
  const tally = { answeredByPerson: 410, abandoned: 8, connected: 396 };
  const [from, until] = ['2026-11-20T09:00:00.000Z', '2026-12-20T09:00:00.000Z'];
  const day = { from: '2026-11-20T00:00:00.000Z', until: '2026-11-21T00:00:00.000Z' };
  return {
    campaign: 'autumn-offer',
    ruleSet: 'default',
    held: null,
    ftc: { windows: [{ from, until, ...tally, percent: 1.9512, upper95: 3.5004 }] },
    ofcom: {
      falseMachineRate: { rate: 0.02, source: '500 labelled recordings of October' },
      windows: [{ ...day, ...tally, estimate: 8.3673, percent: 3.97, upper95: 5.9123 }],
    },
  };
}

function writeCursor(campaign: string): string {
  return Buffer.from(campaign).toString('base64url');
}

/** @throws ProblemError if the cursor isn't a page's `nextCursor` */
function readCursor(cursor: string): string {
  const campaign = Buffer.from(cursor, 'base64url').toString();
  if (!/^[^\p{Cc}\p{Cs}\uFFFD]{1,64}$/u.test(campaign)) throw badCursor();
  return campaign;
}
