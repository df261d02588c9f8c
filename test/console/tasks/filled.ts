// A gateway that has been in use for two weeks: calls that were really placed on the sandbox, their
// copies on earlier days, rule sets, a campaign that is held, a suppression, and a receiver that
// fails. The release test of tasks asks it what its users ask.

import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import pg from 'pg';
import { createAppIn } from '../../support/apps.ts';
import { eventually } from '../../support/eventually.ts';
import { type GatewayProcess, makeDataDir, startGateway } from '../../support/gateway-process.ts';
import { startPostgres } from '../../support/postgres-server.ts';
import { startReceiver } from '../../support/receiver.ts';
import { insertRows } from '../../support/tables.ts';

export type Filled = AsyncDisposable & {
  readonly gateway: GatewayProcess;
  readonly base: string;
  /** Ids of the calls that were really placed, by what happened in them. */
  readonly calls: Readonly<Record<Kind, string>>;
  /** The origin of the receiver that fails. */
  readonly failing: string;
  /** Places a call that talks until somebody hangs up, to this bot. */
  dialLive(botId: string): Promise<string>;
};

const at = (end: string) => `tel:+12025550${end}`;
const detect = { machineDetection: 'detect' };
const campaign = (name: string) => ({ campaign: name });

/** What is dialled first, each with its bot. */
const requests = {
  person: ['sales', { ...detect, target: at('100'), ...campaign('spring') }],
  message: [
    'reminders',
    { ...detect, target: at('110'), voicemail: { play: 'sound:offer' }, ...campaign('renewals') },
  ],
  noMessage: ['reminders', { machineDetection: 'disconnect', target: at('111') }],
  fax: ['sales', { ...detect, target: at('112') }],
  screener: ['sales', { ...detect, target: at('114') }],
  transferred: ['sales', { ...detect, target: at('102') }],
  recorded: ['surveys', { ...detect, target: at('102'), recording: {} }],
  optedOut: ['surveys', { ...detect, target: at('108') }],
  busy: ['reminders', { target: at('130'), ...campaign('renewals') }],
  declined: ['sales', { target: at('131') }],
  unavailable: ['reminders', { target: at('132') }],
  carrierDown: ['sales', { target: at('133') }],
  invalid: ['surveys', { target: at('134') }],
  blocked: ['sales', { target: at('135') }],
  noAnswer: ['surveys', { target: at('121'), timeoutInMs: 3_000 }],
} as const satisfies Readonly<Record<string, readonly [string, Readonly<Record<string, unknown>>]>>;

export type Kind = keyof typeof requests;

export async function openFilled(): Promise<Filled> {
  const cleanups: (() => unknown)[] = [];
  const dispose = async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  };
  try {
    const [postgres, dataDir, receiver, broken, refusing] = await Promise.all([
      startPostgres(),
      makeDataDir(),
      startReceiver(),
      startReceiver(),
      startReceiver(),
    ]);
    cleanups.push(
      () => postgres.stop(),
      () => dataDir.remove(),
      () => receiver.close(),
      () => broken.close(),
      () => refusing.close(),
    );
    const secretsKey = randomBytes(32).toString('hex');
    const app = await createAppIn(postgres.url, secretsKey);
    const gateway = await startGateway(
      dataDir.path,
      {
        ...{ DATABASE_URL: postgres.url, SECRETS_KEY: secretsKey, SANDBOX: 'on' },
        ...{ NOTIFY_ALLOWED_NETWORKS: '127.0.0.0/8', NODE_ID: 'gateway-1' },
      },
      app,
    );
    cleanups.push(() => gateway.terminate());
    const pool = new pg.Pool({ connectionString: postgres.url, max: 2 });
    cleanups.push(() => pool.end());
    broken.answerWith(() => 503);
    let isRefusing = true;
    refusing.answerWith(() => (isRefusing ? 410 : 200));
    await storeSound(gateway);
    const dial = dialerOf(gateway);
    const calls = await placeCalls(gateway, dial, receiver.url);
    await untilCounted(pool);
    await copyDays(pool);
    await setRules(gateway, dial);
    await dial('sales', { target: at('130'), notifyurl: broken.url });
    await refuseNotification(gateway, dial, refusing.url);
    isRefusing = false;
    await copyTotals(pool);
    return {
      ...{ gateway, calls, base: gateway.runtime.httpUrl },
      failing: new URL(broken.url).origin,
      dialLive: (botId) => dial(botId, { ...detect, target: at('102') }),
      [Symbol.asyncDispose]: dispose,
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}

type Dial = (botId: string, body: Readonly<Record<string, unknown>>) => Promise<string>;

function dialerOf({ dialer }: GatewayProcess): Dial {
  return async (botId, body) => {
    const path = `/api/1.1/public/bot/${botId}/V2/contactcenter/dialout`;
    const request = { botId, caller: '+15559876543', trunk: 'sandbox', ...body };
    const answer = await dialer.request('POST', path, request);
    const { callId } = answer.body as { readonly callId?: string };
    if (callId === undefined) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`);
    return callId;
  };
}

const soundFile = new URL('../../../src/embedded/sandbox/audio/bot-message.wav', import.meta.url);

async function storeSound({ runtime, dialer }: GatewayProcess): Promise<void> {
  const answer = await fetch(`${runtime.httpUrl}/api/public/sounds/offer`, {
    ...{ method: 'PUT', body: new Uint8Array(await readFile(soundFile)) },
    headers: { auth: dialer.token, 'content-type': 'audio/wav' },
  });
  if (!answer.ok) throw new Error(await answer.text());
}

async function placeCalls(gateway: GatewayProcess, dial: Dial, notifyurl: string) {
  const { dialer } = gateway;
  const placed = await Promise.all(
    Object.entries(requests).map(
      async ([kind, [botId, body]]) => [kind, await dial(botId, { ...body, notifyurl })] as const,
    ),
  );
  const calls = Object.fromEntries(placed) as Record<Kind, string>;
  const command = async (kind: 'recorded' | 'transferred', body: object) => {
    const path = `/api/public/bot/${requests[kind][0]}/calls/${calls[kind]}/commands`;
    return (await dialer.request('POST', path, body)).status;
  };
  const eventsOf = async (kind: Kind) => {
    const { body } = await dialer.request('GET', `/api/public/calls/${calls[kind]}`);
    const { timeline } = body as { readonly timeline: readonly { readonly type: string }[] };
    return timeline.map(({ type }) => type);
  };
  const until = (kind: Kind, type: string) =>
    eventually(async () => (await eventsOf(kind)).includes(type), `${kind}: ${type}`, 60_000);
  const end = (kind: Kind) =>
    dialer.request('DELETE', `/api/public/bot/${requests[kind][0]}/calls/${calls[kind]}`);
  await until('transferred', 'amd');
  await command('transferred', { command: 'transfer', to: at('105') });
  await until('transferred', 'transfer-answered');
  await end('transferred');
  await until('recorded', 'amd');
  await end('recorded');
  await until('recorded', 'recording-stored');
  await eventually(
    async () => {
      const { body } = await dialer.request('GET', '/api/public/calls?limit=200');
      const { calls: listed } = body as { readonly calls: readonly { readonly state: string }[] };
      return listed.every(({ state }) => state === 'ended');
    },
    'the calls end',
    90_000,
  );
  return calls;
}

/** The gateway counts calls a moment after they have ended. Copies of such calls aren't counted. */
async function untilCounted(pool: pg.Pool): Promise<void> {
  const uncounted = 'select 1 from calls where end_published_at is null limit 1';
  await eventually(
    async () => (await pool.query(uncounted)).rowCount === 0,
    'the calls are counted',
    60_000,
  );
}

/** How many days ago the copies are, and how many of each call. */
const copies = [
  [1, 4],
  [2, 2],
  [3, 3],
  [5, 2],
  [7, 5],
  [8, 2],
] as const;

/** Copies the calls with their events and notifications onto earlier days. */
async function copyDays(pool: pg.Pool): Promise<void> {
  const columns = await columnsOf(pool, 'calls', ['call_id', 'sid', 'idempotency_key', 'day']);
  const times = columns.filter((name) => /_at$|_before$/.test(name));
  const shifted = columns.map((name) =>
    times.includes(name) ? `${name} - shift` : name === 'request' ? rewritten : name,
  );
  const select = `
    select call_id as old_id, 'call-' || gen_random_uuid() as new_id, 'sid-' || gen_random_uuid() as new_sid, day as old_day,
      $1::integer * interval '1 day' + copy * interval '2 minutes' as shift, copy, row_number() over (order by call_id) as nth
    from calls, generate_series(1, $2::integer) as copy where accepted_at > now() - interval '20 minutes'`;
  for (const [daysAgo, count] of copies) {
    await pool.query('begin');
    await pool.query(`create temporary table moves as ${select}`, [daysAgo, count]);
    await pool.query(
      `insert into calls (call_id, sid, ${columns.join(', ')})
       select new_id, new_sid, ${shifted.join(', ')} from moves join calls on calls.call_id = old_id`,
    );
    await pool.query(
      `insert into call_events (day, call_id, event_sequence, event_id, type, time, data)
       select (old_day - $1::integer)::date, new_id, event_sequence, 'evt-' || gen_random_uuid(), type, time - shift, data
       from moves join call_events on call_events.call_id = old_id`,
      [daysAgo],
    );
    await pool.query('drop table moves');
    await pool.query('commit');
  }
}

/** Each copy calls another number, from another caller ID. */
const rewritten = `jsonb_set(jsonb_set(request, '{target,number}', to_jsonb((14155550100 + nth * 7 + copy)::text)),
  '{caller}', to_jsonb((12025550190 + copy % 3)::text))`;

async function columnsOf(pool: pg.Pool, table: string, without: readonly string[]) {
  const { rows } = await pool.query<{ name: string }>(
    `select column_name as name from information_schema.columns where table_name = $1 order by ordinal_position`,
    [table],
  );
  return rows.map(({ name }) => name).filter((name) => !without.includes(name));
}

/** A notification that the gateway gives up on at once. */
async function refuseNotification({ dialer }: GatewayProcess, dial: Dial, notifyurl: string) {
  await dial('sales', { target: at('100'), notifyurl });
  await eventually(
    async () => {
      const { body } = await dialer.request('GET', '/api/public/notifications?state=failed');
      const { notifications } = body as { readonly notifications: readonly unknown[] };
      return notifications.length > 1;
    },
    'a notification is given up',
    60_000,
  );
}

/** The totals of the copies, as the gateway counts them when calls end. */
async function copyTotals(pool: pg.Pool): Promise<void> {
  const slot = `date_bin('15 minutes', accepted_at, timestamptz '2000-01-01 00:00:00+00')`;
  const counts = `count(*), count(answered_at), count(*) filter (where ended_at - answered_at <= interval '6 seconds')`;
  const ofCopies = `from calls where accepted_at < now() - interval '12 hours'`;
  await pool.query(
    `insert into call_totals (account_id, outcome, status, verdict, slot, bot_id, trunk, calls, answered, short, talk_ms)
     select account_id, outcome, status, coalesce(verdict, ''), ${slot}, bot_id, coalesce(trunk, ''), ${counts},
       coalesce(sum(round(extract(epoch from ended_at - answered_at) * 1000)), 0) ${ofCopies} group by 1, 2, 3, 4, 5, 6, 7`,
  );
  await pool.query(
    `insert into caller_totals (account_id, slot, caller, bot_id, calls, answered, short, blocked)
     select account_id, ${slot}, request ->> 'caller', bot_id, ${counts}, count(*) filter (where outcome = 'blocked')
     ${ofCopies} group by 1, 2, 3, 4`,
  );
  await insertRows(pool, 'call_totals', trunkTotals());
}

const hourMs = 3_600_000;

/** Calls of another account on two trunks. On `carrier-b`, more are short than a week ago. */
function trunkTotals(): readonly object[] {
  const firstMs = Math.floor(Date.now() / hourMs) * hourMs;
  const common = { accountId: 'other', botId: 'bot-1', outcome: 'completed', status: 'completed' };
  return ['carrier-a', 'carrier-b'].flatMap((trunk) =>
    [0, 168].flatMap((before) =>
      Array.from({ length: 24 }, (_, hour) => {
        const short = trunk === 'carrier-b' && before === 0 ? 22 : 6;
        const slot = new Date(firstMs - (before + hour) * hourMs);
        const counts = { calls: 100, answered: 60 + (hour % 7), short, talkMs: 1_800_000 };
        return { ...common, ...counts, trunk, slot, verdict: 'amd_human_detected' };
      }),
    ),
  );
}

/** A rule set that holds calls now, one that holds a campaign, and a suppressed number. */
async function setRules({ dialer }: GatewayProcess, dial: Dial): Promise<void> {
  const put = async (path: string, body: object) => {
    const { status } = await dialer.request('PUT', `/api/public/${path}`, body);
    if (status >= 300) throw new Error(`${path}: ${status}`);
  };
  await put('rules/office-hours', closedNow());
  await put('rules/office-hours', { ...closedNow(), attempts: [{ most: 3, within: '24h' }] });
  await put('rules/few-abandoned', {
    abandoned: { formula: 'ftc', most: 3, allow: 0, hold: true },
  });
  await put(`suppressions/${encodeURIComponent(at('107'))}`, {
    ...{ reason: 'opt-out', source: 'letter of 3 May' },
  });
  await dial('reminders', { target: at('107'), ...campaign('renewals') });
  const patient = { queueTimeoutMs: 3_600_000 };
  for (const end of ['101', '102', '103'])
    await dial('reminders', { ...detect, ...patient, target: at(end), rules: 'office-hours' });
  const abandoned = { ...detect, target: at('102'), rules: 'few-abandoned', ...campaign('autumn') };
  const first = await dial('sales', abandoned);
  const path = `/api/public/bot/sales/calls/${first}`;
  await eventually(
    async () => {
      const { body } = await dialer.request('GET', `/api/public/calls/${first}`);
      const { timeline } = body as { readonly timeline: readonly { readonly type: string }[] };
      return timeline.some(({ type }) => type === 'abandoned');
    },
    'a call is abandoned',
    60_000,
  );
  await dialer.request('DELETE', path);
  await eventually(
    async () => {
      const { body } = await dialer.request('GET', `/api/public/calls/${first}`);
      return (body as { readonly state: string }).state === 'ended';
    },
    'the abandoned call ends',
    60_000,
  );
  await dial('sales', { ...abandoned, ...patient });
}

/** Permits an hour of the day that is far from now in the zones of the callees. */
function closedNow() {
  const opens = (new Date().getUTCHours() + 6) % 23;
  const two = (hour: number) => `${String(hour).padStart(2, '0')}:00`;
  const window = { days: 'mon-sun', from: two(opens), until: two(opens + 1) };
  return { hours: { windows: [window], otherwise: 'wait' } };
}
