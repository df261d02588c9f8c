// A keeper with a spool of plain files, a real store and a real database. A test may let the
// process die at any step, and start the next one on what is left.

import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CallEvent } from '../../../src/calls/contract/call-event.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import {
  Keeper,
  type KeeperOutcome,
  type KeeperPorts,
} from '../../../src/recording/keeper/keeper.ts';
import type { Leftover, SpooledRecording } from '../../../src/recording/recording-thread.ts';
import { openRecordingStore } from '../../../src/recording/store/open-store.ts';
import type { Done, RecordingStore } from '../../../src/recording/store/recording-store.ts';
import type { SpoolHeader } from '../../../src/recording/thread/spool-header.ts';
import { publishLateEvents } from '../../../src/store/recordings/late-events.ts';
import { findLostOwners, RecordingRows } from '../../../src/store/recordings/recording-rows.ts';
import { acceptedCall } from '../../support/call-records.ts';
import type { TestDatabase } from '../../support/databases.ts';
import { eventually } from '../../support/eventually.ts';
import { insertRows } from '../../support/tables.ts';

export const startedAt = new Date('2026-11-28T12:00:00Z');

export type KeeperRig = Awaited<ReturnType<typeof createRig>>;

export async function createRig(database: TestDatabase) {
  const root = await mkdtemp(join(tmpdir(), 'offhook-keeper-'));
  const store = openRecordingStore({ kind: 'folder', path: join(root, 'store') });
  const published: CallEvent[] = [];
  let now = new Date('2026-11-28T12:01:00Z');
  return {
    ...{ root, store, published, database },
    now: () => now,
    pass: (ms: number) => {
      now = new Date(now.getTime() + ms);
    },
    /** Inserts a call that has ended, and is settled unless the test says otherwise. */
    async endedCall(request: object = {}, { isSettled = true } = {}): Promise<string> {
      const call = acceptedCall();
      const at = call.acceptedAt;
      await insertRows(database.pool, 'calls', [
        {
          ...{ ...call, state: 'ended', status: 'completed', dialBefore: at, ownerId: 'node-1/a' },
          ...{ outcome: 'completed', endedAt: at, lastEventSequence: 8 },
          ...{ publishedEventSequence: 8, endPublishedAt: isSettled ? at : null },
          request: { ...call.request, ...request },
        },
      ]);
      return call.callId;
    },
    async addNode(ownerId: string, lostAt?: Date): Promise<void> {
      await database.pool.query(
        `insert into nodes (owner_id, node_id, version, started_at, renewed_at, steady_since, lease_until, calls, draining, question_key, lost_at)
         values ($1, split_part($1, '/', 1), '0', now(), now(), now(), now() + interval '1 hour', 0, false, '', $2)
         on conflict (owner_id) do update set lost_at = excluded.lost_at`,
        [ownerId, lostAt ?? null],
      );
    },
    /** Writes a recording into the spool, as one file or as segments. */
    async spool(callId: string, { ownerId = 'node-1/a', isFinished = true, changes = {} } = {}) {
      const folder = join(root, 'spool', ownerId.replace('/', '-'), callId);
      await mkdir(folder, { recursive: true });
      const header = headerOf(callId, ownerId);
      await writeFile(join(folder, 'header.json'), JSON.stringify({ ...header, ...changes }));
      await writeFile(join(folder, 'segments'), `audio of ${callId}`);
      await utimes(folder, startedAt, startedAt);
      return isFinished ? await finish(folder, false) : undefined;
    },
    threadOf: () => spoolThread(join(root, 'spool')),
    uploads: uploadsTo(store),
    spooledFolders: () => foldersIn(join(root, 'spool')),
    /** Starts a process: its keeper, and how to run it until it has nothing to do. */
    start: (ownerId: string, changes: Partial<KeeperPorts> = {}) => {
      const rows = new RecordingRows(database.pool, ownerId, () => now);
      const outcomes: KeeperOutcome[] = [];
      const ports: KeeperPorts = {
        thread: spoolThread(join(root, 'spool')),
        uploads: uploadsTo(store),
        ...{ store, rows, ownerId, nodeId: ownerId.split('/')[0] ?? '', retentionDays: 30 },
        findLostOwners: (owners) => findLostOwners(database.pool, owners),
        openContentKey: () => new Uint8Array(32),
        ...{ now: () => now, random: () => 0, logger: silentLogger },
        onOutcome: (outcome) => outcomes.push(outcome),
        ...changes,
      };
      const keeper = new Keeper(ports);
      return {
        ...{ keeper, outcomes, rows: ports.rows },
        /** Looks once, and does what can be done at once. */
        async look(): Promise<void> {
          await keeper.look();
          await keeper.settled();
          await keeper.stop();
        },
        announce: async (): Promise<void> => {
          await rows.appendOwed();
          await publishLateEvents(database.pool, now, async (event) => {
            if (!published.some(({ id }) => id === event.id)) published.push(event);
          });
        },
      };
    },
    async remove(): Promise<void> {
      await store.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}

function uploadsTo(store: RecordingStore): KeeperPorts['uploads'] {
  return {
    async put({ audio, metadata }): Promise<Done> {
      const done = await store.put(audio.name, audio.path, audio.contentType);
      return done.ok ? await store.put(metadata.name, metadata.path, 'application/json') : done;
    },
  };
}

function headerOf(callId: string, ownerId: string): SpoolHeader {
  return {
    ...{ version: 1, callId, accountId: 'account-1', botId: 'bot-1', ownerId },
    ...{ startedAt: startedAt.getTime(), from: 'answer', fill: 'silence' },
  };
}

/** A spool whose finished files are the texts of its segments. */
function spoolThread(root: string): KeeperPorts['thread'] {
  return {
    onFinished: () => undefined,
    async leftovers() {
      const found: Leftover[] = [];
      for (const folder of await foldersIn(root)) {
        const header = await readHeader(folder);
        const { mtimeMs: changedAt } = await stat(folder);
        const names = await readdir(folder);
        if (!names.includes('done')) found.push({ folder, changedAt, state: 'unfinished', header });
        else {
          const spooled = await finish(folder, header.ownerId !== 'node-1/a');
          found.push({ folder, changedAt, state: 'finished', header, spooled });
        }
      }
      return found;
    },
    finish: (folder) => finish(folder, true),
    remove: (folder) => rm(folder, { recursive: true, force: true }),
  };
}

async function foldersIn(root: string): Promise<string[]> {
  const owners = await readdir(root).catch(() => []);
  const folders = await Promise.all(
    owners.map(async (owner) =>
      (await readdir(join(root, owner))).map((name) => join(root, owner, name)),
    ),
  );
  return folders.flat();
}

async function readHeader(folder: string): Promise<SpoolHeader> {
  return JSON.parse(await readFile(join(folder, 'header.json'), 'utf8')) as SpoolHeader;
}

async function finish(folder: string, incomplete: boolean): Promise<SpooledRecording> {
  const header = await readHeader(folder);
  const audio = await readFile(join(folder, 'segments'));
  const { callId, accountId, botId, ownerId } = header;
  await writeFile(join(folder, `${callId}.wav`), audio);
  await writeFile(join(folder, `${callId}.json`), JSON.stringify({ callId }));
  await writeFile(join(folder, 'done'), '');
  return {
    ...{ folder, callId, accountId, botId, ownerId, startedAt: header.startedAt },
    ...{ durationMs: 12_000, pausedMs: 0, bytes: audio.length, incomplete },
    sha256: createHash('sha256').update(audio).digest('hex'),
    ...{ fileName: `${callId}.wav`, metadataName: `${callId}.json` },
    metadata: {} as SpooledRecording['metadata'],
  };
}

class Death extends Error {}

/**
 * Lets the process die at its n-th step with anything outside it: just before the step, or just
 * after it, so that its answer is lost. A dead process does nothing more.
 */
export function mortal(atStep: number, how: 'before' | 'after') {
  let steps = 0;
  let isDead = false;
  const take = async (step: () => unknown): Promise<unknown> => {
    if (isDead) throw new Death('dead');
    steps += 1;
    isDead = steps === atStep;
    if (isDead && how === 'before') throw new Death('before the step');
    const isLast = isDead;
    const result = await step();
    if (isLast) throw new Death('after the step');
    return result;
  };
  const guard = <Part extends object>(part: Part): Part =>
    new Proxy(part, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => take(() => Reflect.apply(value, target, args));
      },
    });
  return { guard, died: () => isDead };
}

export async function settleCall(database: TestDatabase, callId: string): Promise<void> {
  await database.pool.query('update calls set end_published_at = now() where call_id = $1', [
    callId,
  ]);
}

export async function untilIdle(keeper: Keeper): Promise<void> {
  await eventually(() => keeper.waiting === 0, 'the keeper has stored everything');
}
