// Checks that recordings can be written to the spool and stored. A gateway starts in any case:
// calls without a recording don't need either, and recordings wait for their store.

import { rm, statfs, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Config } from '../config.ts';
import { within } from '../lib/within.ts';
import { openRecordingStore } from '../recording/store/open-store.ts';
import { describeTarget, type StoreTarget } from '../recording/store/recording-store.ts';
import { type Check, connectTimeoutMs, type Finding, failed, ok, warning } from './check.ts';
import { reasonOf } from './reasons.ts';

const mebibyte = 1_024 * 1_024;
/** One call for 18 hours, or 100 calls for ten minutes, at 16 kB/s. */
const comfortableMiB = 1_024;

export function recordingsCheck({ recording }: Pick<Config, 'recording'>): Check {
  const run = async (): Promise<Finding> => {
    const findings = await Promise.all([
      folderFinding('RECORDING_SPOOL', recording.spool),
      storeFinding(recording.store),
    ]);
    const problems = findings.filter(({ state }) => state !== 'ok');
    const details = (problems.length === 0 ? findings : problems).map(({ detail }) => detail);
    const detail = [...new Set(details)].join('; ');
    if (problems.length === 0) return ok(detail);
    return problems.some(({ state }) => state === 'failed') ? failed(detail) : warning(detail);
  };
  return { name: 'recordings', isAwaited: true, run };
}

async function storeFinding(target: StoreTarget): Promise<Finding> {
  if (target.kind === 'folder') return await folderFinding('RECORDING_STORE', target.path);
  const name = describeTarget(target);
  const store = openRecordingStore(target);
  try {
    const done = await within(store.check(), connectTimeoutMs);
    if (done?.ok === true) return ok(`${name} can be written`);
    const reason = done?.fault.detail ?? `no answer within ${connectTimeoutMs / 1_000} s`;
    return failed(`RECORDING_STORE: ${name} cannot be used: ${reason}`);
  } finally {
    await store.close();
  }
}

/** Recordings create their folder with the first call, so a parent is enough. */
async function folderFinding(variable: string, path: string): Promise<Finding> {
  try {
    const freeMiB = await probeNearest(path);
    return freeMiB < comfortableMiB
      ? warning(`${variable}: the disk of ${path} has ${freeMiB} MiB left`)
      : ok(`${path} can be written`);
  } catch (error) {
    return failed(`${variable}: ${path} cannot be written: ${reasonOf(error)}`);
  }
}

/** Writes to the folder, or the nearest parent that exists. Returns its free space in MiB. */
async function probeNearest(folder: string): Promise<number> {
  try {
    await writeAndRemove(join(folder, `probe-recordings-${process.pid}`));
    const { bavail, bsize } = await statfs(folder);
    return Math.floor((bavail * bsize) / mebibyte);
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    if (!isMissing || dirname(folder) === folder) throw error;
    return await probeNearest(dirname(folder));
  }
}

async function writeAndRemove(path: string): Promise<void> {
  try {
    // A whole block, because fewer bytes may still fit on a full disk.
    await writeFile(path, Buffer.alloc(4_096), { mode: 0o600, flush: true });
  } finally {
    await rm(path, { force: true });
  }
}
