// The gateway of the contract tests: the whole API on a real database and a real nats-server. Two
// accounts have one of everything, made from the document's own examples: requests, and messages
// that are published.

import type { AddressInfo } from 'node:net';
import { exampleEvent, exampleIdentity } from '../../src/calls/contract/event-examples.ts';
import type { CallId } from '../../src/calls/contract/identity.ts';
import { streamNames } from '../../src/events/subjects.ts';
import { createSoundStore } from '../../src/sounds/sound-store.ts';
import { createDataTables } from '../../src/store/data-tables.ts';
import { dayOf } from '../../src/store/days.ts';
import { type Rig, startRig, type TestApp } from '../companion/support.ts';
import type { DatabaseKind } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { startTestRecordings, type TestRecordings } from '../support/recordings.ts';
import { insertRows } from '../support/tables.ts';
import type { Answer } from './answers.ts';
import { callServices } from './calls.ts';
import { type Client, createClient, written } from './client.ts';
import { type AuthState, type Callers, credentials } from './credentials.ts';
import {
  bodySchemaOf,
  credentialsHeader,
  examplesOf,
  type OpenApiDocument,
  type Operation,
  operationsOf,
  readDocument,
  type Schema,
} from './document.ts';
import { type ApiRequest, type Pools, pooled, uploadFor } from './requests.ts';
import { addRules } from './rules.ts';

export type Gateway = AsyncDisposable & {
  readonly rig: Rig;
  readonly document: OpenApiDocument;
  readonly operations: readonly Operation[];
  /** The callers of the account `acme`. */
  readonly callers: Callers;
  /** The resources of each account, by the name of the parameter or member that takes them. */
  readonly own: Pools;
  readonly rivals: Pools;
  send(request: ApiRequest): Promise<Answer>;
};

type Sender = (request: ApiRequest, callers?: Callers) => Promise<Answer>;

export async function startGateway(kind: DatabaseKind): Promise<Gateway> {
  const recordings = await startTestRecordings();
  const rig = await startRig(kind, {
    nats: true,
    services: (dependencies, closers) => callServices(dependencies, closers, recordings),
  });
  await rig.server.listen({ host: '127.0.0.1', port: 0 });
  const { port } = rig.server.server.address() as AddressInfo;
  const client = createClient(`http://127.0.0.1:${port}`);
  const document = await readDocument(rig.server);
  const operations = operationsOf(document);
  const { acme, rival, powerless } = rig;
  const callers = { valid: acme, otherTenant: rival, withoutScope: powerless };
  const send = sender(document, client, callers);
  const seed = async (app: TestApp): Promise<Pools> => {
    const asApp: Sender = (request) => send(request, { ...callers, valid: app });
    return await settle(rig, { document, operations, app, recordings, send: asApp });
  };
  const own = await seed(acme);
  const rivals = await seed(rival);
  return {
    ...{ rig, document, operations, callers, own, rivals, send },
    [Symbol.asyncDispose]: async () => {
      client.close();
      await rig.close();
      await recordings.stop();
    },
  };
}

function sender(document: OpenApiDocument, client: Client, usual: Callers): Sender {
  const nextClient = eachAnother();
  return async (request, callers = usual) => {
    const header = credentialsHeader(document, request.operation);
    const who = header === undefined ? {} : await credentials(request.auth, header, callers);
    const sent = written(request);
    const from = { 'x-forwarded-for': nextClient() };
    return await client.send({ ...sent, headers: { ...who, ...from, ...sent.headers } });
  };
}

/**
 * Returns a new client address for each request, because the gateway slows down clients that fail
 * too often.
 */
function eachAnother(): () => string {
  let last = 0;
  return () => {
    last += 1;
    return [10, last >> 16, last >> 8, last].map((part) => part & 0xff).join('.');
  };
}

/** Builds the request that the document shows. */
export function plainRequest(
  operation: Operation,
  pools: Pools,
  parts: { readonly body?: unknown; readonly auth?: AuthState } = {},
): ApiRequest {
  const texts = (where: string): Record<string, string> =>
    Object.fromEntries(
      operation.parameters
        .filter(({ in: place, required }) => place === where && required === true)
        .map(({ name, schema }) => [name, pools[name]?.[0] ?? firstOf(schema)]),
    );
  return {
    ...{ operation, auth: parts.auth ?? 'valid', changes: [] },
    path: Object.fromEntries(
      Object.entries(texts('path')).map(([name, text]) => [name, encodeURIComponent(text)]),
    ),
    query: Object.entries(texts('query')),
    headers: texts('header'),
    body: plainBody(operation, pools, parts.body),
  };
}

function plainBody(operation: Operation, pools: Pools, json: unknown): ApiRequest['body'] {
  const upload = uploadFor(operation, pools);
  if (upload !== undefined) return upload;
  return json === undefined ? undefined : { json: pooled(json, pools, 0) };
}

function firstOf(schema: Schema): string {
  const [first = ''] = (schema['enum'] ?? []) as readonly string[];
  return first;
}

// ── One of everything ────────────────────────────────────────────────────────────────────────────

type Settling = {
  readonly document: OpenApiDocument;
  readonly operations: readonly Operation[];
  readonly app: TestApp;
  readonly recordings: TestRecordings;
  readonly send: Sender;
};

async function settle(rig: Rig, settling: Settling): Promise<Pools> {
  const { accountId, appId } = settling.app;
  const names = {
    botId: [`bot-${accountId}`],
    bot: [`bot-${accountId}`],
    streamId: [`st-${accountId}`],
    accountId: [accountId],
    accountid: [accountId],
    orgId: ['org-1'],
    tableName: [`visits_${accountId}`],
    trunk: ['carrier'],
    sttProvider: ['our-engine'],
    accept: ['application/json'],
    includeSecureForm: ['true'],
  } satisfies Pools;
  await rig.addBot({ botId: names.botId[0] ?? '', streamId: `st-${accountId}`, accountId });
  await createDataTables({ ...rig, clock: { now: () => new Date() } }).define(
    {
      accountId,
      name: names.tableName[0] ?? '',
      columns: [
        { name: 'name', type: 'string' },
        { name: 'visits', type: 'integer' },
        { name: 'firstVisit', type: 'date' },
      ],
      writers: [appId],
    },
    { replace: false },
  );
  const rules = await addRules(rig, settling.app);
  const soundName = await addSounds(rig, accountId);
  const told = await publishExamples(rig, settling.document, names);
  const pools = { ...names, ...told, ...rules, soundName };
  const sent = await sendExamples(settling, pools);
  const answered = { ...sent, ...(await withCopies(rig, sent['connectionId'] ?? [''])) };
  for (const callId of answered['callId'] ?? []) {
    const call = { callId, accountId, botId: names.botId[0] ?? '' };
    await settling.recordings.add(rig.database, call, Buffer.alloc(2_000));
  }
  const eventId = [
    await giveUpNotification(rig, settling.app, answered['callId']?.[0] ?? ''),
  ] as const;
  return {
    ...pools,
    ...answered,
    eventId,
    ...(await resultLink(settling, { ...pools, ...answered })),
  };
}

/** Generated requests delete some of these sounds. */
async function addSounds(rig: Rig, accountId: string): Promise<[string, ...string[]]> {
  const store = createSoundStore({ ...rig, clock: { now: () => new Date() } });
  const names = Array.from({ length: 20 }, (_, index) => `sound-${accountId}-${index}`);
  for (const name of names) await store.put(accountId, name, new Uint8Array(80));
  return names as [string, ...string[]];
}

/** Generated requests delete some rows, and should find others. */
async function withCopies({ database }: Rig, ids: readonly [string, ...string[]]): Promise<Pools> {
  const { rows } = await database.pool.query<{ id: string }>(
    `insert into connections
     select 'cn-' || gen_random_uuid(), account_id, name, provider, model, status, settings, secrets, created_on, modified_on
     from connections, generate_series(1, 50) where connection_id = any($1)
     returning connection_id as id`,
    [ids],
  );
  const [first, ...others] = ids;
  return { connectionId: [first, ...others, ...rows.map(({ id }) => id)] };
}

/** Makes a dead letter, as the notifier leaves it after 24 hours. */
async function giveUpNotification(
  { database }: Rig,
  { accountId }: TestApp,
  callId: string,
): Promise<string> {
  const {
    id: eventId,
    type,
    data,
  } = exampleEvent('failed', {
    identity: { ...exampleIdentity, callId: callId as CallId },
  });
  const at = new Date();
  const common = { eventId, callId, day: dayOf(at), eventSequence: 99 };
  await insertRows(database.pool, 'call_events', [{ ...common, type, time: at, data }]);
  const deadLetter = {
    ...{ ...common, accountId, botId: `bot-${accountId}`, sequence: 1, state: 'failed' },
    ...{ attempts: 9, createdAt: at, failedAt: at, failure: 'expired' },
  };
  await insertRows(database.pool, 'notifications', [deadLetter]);
  return eventId;
}

/** Sends every documented request that creates something. Returns the ids in the answers. */
async function sendExamples(
  { operations, document, send }: Settling,
  pools: Pools,
): Promise<Pools> {
  const ids: Ids = {};
  const examples = operations
    .filter(({ method }) => method === 'post')
    .flatMap((operation) =>
      examplesOf(document, bodySchemaOf(operation)).map((body) => ({ operation, body })),
    )
    // Generated requests end calls, and should find some that are up.
    .flatMap(
      (example) =>
        new Array(example.operation.operationId === 'dialOut' ? 15 : 1).fill(
          example,
        ) as (typeof example)[],
    );
  for (const { operation, body } of examples) {
    const answer = await send(plainRequest(operation, { ...pools, ...ids }, { body }));
    if (answer.status >= 300) {
      throw new Error(`${operation.operationId} refused its example: ${answer.text}`);
    }
    const { connectionId, callId } = JSON.parse(answer.text) as Record<string, string>;
    addIds(ids, { connectionId, callId });
  }
  return ids;
}

type Ids = Record<string, [string, ...string[]]>;

function addIds(ids: Ids, found: Readonly<Record<string, string | undefined>>): void {
  for (const [name, id] of Object.entries(found)) {
    if (id === undefined) continue;
    const known = ids[name];
    if (known === undefined) ids[name] = [id];
    else known.push(id);
  }
}

/**
 * Publishes what producers would publish, on the subject that each schema names. Returns the ids in
 * the messages.
 */
async function publishExamples(rig: Rig, document: OpenApiDocument, names: Pools): Promise<Pools> {
  const { prefix, jetstream } = rig.events;
  const ids: Ids = {};
  for (const schema of Object.values(document.components.schemas)) {
    const subject = schema['x-subject'];
    if (typeof subject !== 'string') continue;
    const filled = subject
      .replace('<prefix>', prefix)
      .replace('<botId>', names['botId']?.[0] ?? '');
    for (const example of examplesOf(document, schema)) {
      const body = ofAccount(pooled(example, names, 0), names['accountId']?.[0]);
      await jetstream.publish(filled, JSON.stringify(body));
      addIds(ids, idsIn(body));
    }
  }
  await ingested(rig);
  return ids;
}

/** Gives each account its own ids, because two accounts publish the same examples. */
function ofAccount(value: unknown, accountId = ''): unknown {
  const mark = Buffer.from(accountId).toString('hex').slice(0, 4);
  const text = JSON.stringify(value, (name, member: unknown) =>
    typeof member === 'string' && ['_id', 'sessionId', 'fileId'].includes(name)
      ? member.replace(/[0-9a-f]{0,4}$/, mark)
      : member,
  );
  return JSON.parse(text);
}

function idsIn(published: unknown): Record<string, string | undefined> {
  const body = published as Readonly<Record<string, string>>;
  const id = body['_id'] ?? '';
  return {
    sessionId: body['sessionId'],
    userId: body['createdBy'],
    testSuiteName: body['testSuiteName'],
    testRunId: id.startsWith('tr-') ? id : undefined,
    msgId: id.startsWith('ms-') ? id : undefined,
  };
}

async function ingested({ events: { prefix, manager } }: Rig): Promise<void> {
  const { ingest, dead } = streamNames(prefix);
  await eventually(async () => {
    for await (const { num_pending, num_ack_pending } of manager.consumers.list(ingest)) {
      if (num_pending + num_ack_pending > 0) return false;
    }
    return true;
  }, 'what was published is stored');
  const { state } = await manager.streams.info(dead);
  if (state.messages > 0) throw new Error('a published example was refused');
}

/** The link to a download contains its parameters. */
async function resultLink({ operations, send }: Settling, pools: Pools): Promise<Pools> {
  const operation = operations.find(({ operationId }) => operationId === 'getTestRunStatus');
  if (operation === undefined) return {};
  const answer = await send(plainRequest(operation, pools));
  const run = JSON.parse(answer.text) as { result?: { fileUrl?: string } };
  const { searchParams } = new URL(run.result?.fileUrl ?? 'http://none');
  return {
    expires: [searchParams.get('expires') ?? ''],
    signature: [searchParams.get('signature') ?? ''],
  };
}
