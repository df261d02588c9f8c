// Accepts commands for calls, on any node. The results are reported as events.

import { randomUUID } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import {
  type Command,
  type CommandOf,
  type CommandReply,
  commandRemarks,
  commandSchema as contract,
  readCommand,
} from '../../calls/contract/command.ts';
import { commandId } from '../../calls/contract/definitions.ts';
import { type AppLimits, mayDial } from '../../calls/target/app-limits.ts';
import { parseTarget } from '../../calls/target/parse-target.ts';
import { withGlobalNumber } from '../../calls/transfer/transfer-request.ts';
import { type ApiInstance, botRoute, type Clients } from '../../http/http.ts';
import { dependencyRetryAfterS, invalidRequest, ProblemError } from '../../http/problem.ts';
import { accepted, authenticated } from '../../http/route-schema.ts';
import { exceptBody, withPlace } from '../../http/validation.ts';
import type { App } from '../../store/apps/app-directory.ts';
import { callIdOf, requireFound } from '../call-routes.ts';
import { callParams } from '../call-schemas.ts';
import type { ApiServices } from '../services.ts';

const commandSchema = contract.meta({
  id: 'CallCommand',
  description:
    'Fields that are not listed have no effect; the response names them in `ignored`. If you misspell a listed field, you get a 400 that names the right one, except for `hangup`.',
  examples: [
    { command: 'play', sound: 'sound:spring-offer', id: 'offer-1' },
    { command: 'dtmf', digits: '2w4#' },
    { command: 'stop' },
    { command: 'stream', url: 'wss://bot.example/audio', parameters: { campaign: 'spring' } },
    { command: 'stream', url: null },
    { command: 'transfer', to: 'sip:agents@pbx.example', timeoutMs: 20_000 },
    { command: 'record', action: 'pause' },
    { command: 'optOut' },
    { command: 'hangup' },
  ],
});

const commandAnswerSchema = z
  .object({
    ok: z.literal(true),
    commandId: z
      .string()
      .describe('the request’s id, or a new one; the events that result from the command carry it'),
    state: z.string().describe('the call’s state, e.g. `answered`; `ending` after a hang-up'),
    ...commandRemarks,
  })
  .meta({
    id: 'CallCommandAnswer',
    examples: [{ ok: true, commandId: 'offer-1', state: 'answered' }],
  });

export type CommandRoutesDependencies = {
  readonly services: Pick<ApiServices, 'calls' | 'commands'>;
  readonly clients: Clients;
};

export function registerCommands(
  server: ApiInstance,
  { services, clients }: CommandRoutesDependencies,
): void {
  server.route({
    method: 'POST',
    url: '/api/public/bot/:botId/calls/:callId/commands',
    onRequest: clients.require(botRoute('Dialout')),
    schema: {
      operationId: 'commandCall',
      summary:
        'Play a sound, stop it, press keys, change the bot, transfer, record, opt the person out, hang up',
      description:
        'Responds as soon as the process that owns the call has accepted the command. Events report its result. With an `Idempotency-Key` or an `id` field, a repeated command is carried out only once and gets the same response. A call remembers its last 1,000 command ids until it ends. A 409 explains why the command is not possible in the call’s current state. After a 503 you cannot tell whether the command was carried out, so repeat it with the same id.',
      tags: ['calls'],
      params: callParams,
      body: commandSchema,
      response: accepted(
        'The command was accepted',
        commandAnswerSchema,
        [400, 401, 403, 404, 406, 409, 413, 415],
      ),
      ...authenticated,
    },
    // The schema is for documentation only. `readCommand` parses the body, as it does on NATS.
    validatorCompiler: exceptBody,
    handler: async (request, reply) => {
      const app = clients.appOf(request);
      const { accountId, appId, limits } = app;
      const { botId } = clients.botOf(request);
      const callId = callIdOf(request.params.callId);
      const { command, remarks } = commandOf(request, app);
      const state = requireFound(await services.calls.state({ accountId, botId }, callId));
      if (state === 'ended') throw hasEnded();
      if (command.command === 'transfer' && !mayTransfer(limits, command)) throw targetForbidden();
      const answer = responseFor(await services.commands.run(callId, command, appId));
      return await reply.code(202).send({ ...answer, commandId: command.id, ...remarks });
    },
  });
}

type ParsedCommand = {
  readonly command: Command & { readonly id: string };
  readonly remarks: { readonly to?: string; readonly ignored?: readonly string[] };
};

function commandOf(request: FastifyRequest, app: App): ParsedCommand {
  const read = readCommand(request.body);
  if (!read.ok) throw invalidRequest(read.errors.map((error) => withPlace(error, 'body')));
  const { ignored } = read;
  const command = withId(read.command, request);
  const wasIgnored = ignored.length === 0 ? {} : { ignored };
  if (command.command !== 'transfer') return { command, remarks: wasIgnored };
  const dialled = withGlobalNumber(command, app);
  if (!dialled.ok) throw invalidRequest(dialled.errors);
  const { transfer, to } = dialled;
  return { command: transfer, remarks: { ...(to === undefined ? {} : { to }), ...wasIgnored } };
}

/**
 * Returns whether the client app's limits allow the transfer. The process that owns the call also
 * checks the limits of the app that placed the call.
 */
function mayTransfer(limits: AppLimits | undefined, { to }: CommandOf<'transfer'>): boolean {
  const target = parseTarget(to);
  return target.ok && mayDial(limits, target.target);
}

/**
 * Gives the command its id, which comes from the `id` field or the header, or is new.
 *
 * @throws ProblemError if the header and the field differ
 */
function withId(command: Command, { headers }: FastifyRequest): Command & { readonly id: string } {
  const key = headers['idempotency-key'];
  const id = command.id ?? (typeof key === 'string' ? key : `cmd-${randomUUID()}`);
  const { error } = commandId.safeParse(key ?? id);
  const problems = (error?.issues ?? []).map(({ message }) => message);
  if (key !== undefined && key !== id) problems.push('differs from the id field');
  if (problems.length > 0) {
    throw invalidRequest(problems.map((message) => ({ path: 'Idempotency-Key', message })));
  }
  return { ...command, id };
}

function responseFor(reply: CommandReply | undefined) {
  if (reply === undefined) throw callUnreachable();
  if (reply.ok && reply.state === 'ended') throw hasEnded();
  if (reply.ok) return { ok: true as const, state: reply.state ?? '' };
  if (reply.code === 'forbidden') throw targetForbidden();
  // The gateway that owns the call failed, possibly after it had carried out the command.
  if (reply.code === 'internal') throw callUnreachable();
  if (reply.code === 'invalid') throw invalidRequest(reply.errors ?? []);
  throw new ProblemError(
    reply.code === 'id-used' ? 'idempotency-conflict' : 'conflict',
    reply.error,
  );
}

function callUnreachable(): ProblemError {
  return new ProblemError('unavailable', 'The call cannot be reached at the moment.', {
    retryAfterS: dependencyRetryAfterS,
  });
}

function targetForbidden(): ProblemError {
  return new ProblemError('forbidden', 'The app may not dial this number.', {
    errors: [{ path: 'to', message: 'is not among the numbers that the app may dial' }],
  });
}

function hasEnded(): ProblemError {
  return new ProblemError('conflict', 'The call has ended.');
}
