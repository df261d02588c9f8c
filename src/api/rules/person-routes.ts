// Deletes what is stored about a person: the calls to their number, with everything that belongs to
// those calls. The records of these calls stay.

import { z } from 'zod';
import { parseTarget } from '../../calls/target/parse-target.ts';
import type { ApiInstance, Clients } from '../../http/http.ts';
import { invalidRequest, ProblemError } from '../../http/problem.ts';
import { authenticated, responses } from '../../http/route-schema.ts';
import type { App } from '../../store/apps/app-directory.ts';
import type { ApiServices } from '../services.ts';

export type PersonDependencies = {
  readonly services: Pick<ApiServices, 'persons'>;
  readonly clients: Clients;
};

/** Why something stays, by its name. */
const reasons = {
  records:
    'the record of each call, with the number, is kept for RECORD_RETENTION_DAYS: 16 CFR 310.5 asks for the called number of each call for five years',
  suppressions:
    'a suppression keeps the number from being called again; delete it at /api/public/suppressions if the person wants calls',
} as const;

const unknownRest =
  'Not searched: idempotency keys (no number, expire 24 h after the end of their call), the companion’s data tables, imports and test runs, published resources and dead letters on NATS (they expire after EVENT_RETENTION_DAYS), logs (no numbers), and what your own programs received.';

const count = z.number().int();
const removalSchema = z
  .object({
    removed: z
      .record(z.string(), count)
      .describe('the number of rows or messages, by what they were'),
    kept: z.array(
      z.object({ what: z.enum(['records', 'suppressions']), count, reason: z.string() }),
    ),
    notSearched: z.string(),
  })
  .meta({
    id: 'PersonRemoval',
    examples: [
      {
        removed: { calls: 2, events: 14, notifications: 6, streamedEvents: 14, contexts: 1 },
        kept: [
          { what: 'records', count: 2, reason: reasons.records },
          { what: 'suppressions', count: 0, reason: reasons.suppressions },
        ],
        notSearched: unknownRest,
      },
    ],
  });

export function registerPersons(
  server: ApiInstance,
  { services, clients }: PersonDependencies,
): void {
  server.route({
    method: 'DELETE',
    url: '/api/public/persons/:number',
    onRequest: clients.require({ scope: 'Calling Rules' }),
    schema: {
      operationId: 'deletePerson',
      summary: 'Delete what is stored about the calls to a number',
      description:
        'Removes the account’s calls to this number, with their events (also on NATS), contexts, notifications and attempts, captures, messages and conversations, and the number’s count of attempts, which its next call counts again from the records. Needs an app that may use all bots. If a call to the number has not been settled, the response is 409 and nothing is removed: end the call and repeat the request. If the request fails, repeat it; it removes whole calls only. Records and suppressions stay.',
      tags: ['rules'],
      params: z.object({
        number: z
          .string()
          .max(64)
          .describe('the person’s number, written as in a dial-out request'),
      }),
      response: responses(
        'What was removed, and what stays',
        removalSchema,
        [400, 401, 403, 406, 409, 413, 415],
      ),
      ...authenticated,
    },
    handler: async (request) => {
      const app = clients.appOf(request);
      if (!app.bots.includes('*')) {
        throw new ProblemError(
          'forbidden',
          'Only an app that may use all bots may delete a person.',
        );
      }
      const result = await services.persons.remove(
        app.accountId,
        numberIn(request.params.number, app),
      );
      if (result.kind === 'in-use') {
        const calls = result.calls === 1 ? '1 call' : `${result.calls} calls`;
        const are = result.calls === 1 ? 'is' : 'are';
        throw new ProblemError(
          'conflict',
          `${calls} to this number ${are} waiting, up, or not settled yet. Nothing was removed. Repeat the request about a second after the end of the last call, or five minutes after its gateway died.`,
        );
      }
      const { removed, kept } = result;
      return {
        removed,
        kept: (['records', 'suppressions'] as const).map((what) => ({
          ...{ what, count: kept[what] ?? 0, reason: reasons[what] },
        })),
        notSearched: unknownRest,
      };
    },
  });
}

/** Returns the digits. */
function numberIn(text: string, app: App): string {
  const result = parseTarget(text.startsWith('tel:') ? text : `tel:${text}`, app);
  if (!result.ok) throw invalidRequest([{ path: 'number', message: result.message }]);
  const { target } = result;
  if (target.kind === 'tel') return target.number;
  throw invalidRequest([{ path: 'number', message: 'must be a number, e.g. +12025550110' }]);
}
