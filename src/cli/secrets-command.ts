// Implements `offhook secrets reencrypt`, which re-encrypts the stored secrets after SECRETS_KEY
// has changed.

import { setTimeout as pause } from 'node:timers/promises';
import type { AdminAnswer } from '../api/admin/admin-operations.ts';
import { type AdminAccess, openAdminAccess } from './admin-access.ts';
import type { CliContext } from './cli-context.ts';
import { CliError } from './cli-error.ts';

export type ReencryptOptions = { readonly dryRun?: boolean; readonly force?: boolean };

type Page = AdminAnswer<'secrets.reencrypt'>;

/**
 * A gateway may copy a value, e.g. from a bot to a call, after we passed its new place. So we go
 * through everything again until nothing is left. More than a few runs mean that a gateway still
 * seals with the previous key.
 */
const maxRuns = 5;
/** Gateways use the new key about ten seconds after the last of them has it. */
const switchTimeoutMs = 30_000;
const switchPollMs = 500;

/** What one run found, by column. */
type Run = Map<string, { replaced: number; busy: number; unreadable: Record<string, number> }>;

export async function reencryptSecrets(
  context: CliContext,
  { dryRun = false, force = false }: ReencryptOptions,
): Promise<void> {
  await using access = await openAdminAccess(context);
  if (!dryRun && !force) await untilUsed(access, context.interrupted);
  const left = dryRun
    ? await runOnce(context, access, { dryRun })
    : await runUntilDone(context, access, { dryRun });
  if (dryRun && left > 0)
    throw new CliError(
      `${left} secrets are not sealed with SECRETS_KEY; --dry-run changed nothing.`,
    );
  if (left > 0) {
    throw new CliError(
      `${left} secrets are not sealed with SECRETS_KEY. Keep SECRETS_KEY_PREVIOUS, and run this again.`,
    );
  }
  context.print('Every stored secret is sealed with SECRETS_KEY. SECRETS_KEY_PREVIOUS can go.');
}

/**
 * Waits until every gateway seals with the current key, because we could miss what they seal
 * meanwhile.
 */
async function untilUsed(access: AdminAccess, interrupted: AbortSignal): Promise<void> {
  const deadlineMs = performance.now() + switchTimeoutMs;
  for (;;) {
    const { without, notUsing } = await access.run('secrets.rollout', {});
    if (without.length > 0) {
      throw new CliError(
        `These gateways don’t have SECRETS_KEY yet: ${without.join(', ')}. Restart them with it first, or use --force if they never come back.`,
      );
    }
    if (notUsing.length === 0) return;
    if (interrupted.aborted || performance.now() > deadlineMs) {
      throw new CliError(
        `These gateways don’t use SECRETS_KEY yet: ${notUsing.join(', ')}. Run the command again.`,
      );
    }
    await pause(switchPollMs);
  }
}

type How = { readonly dryRun: boolean };

/**
 * Returns how many values are still not sealed with the current key.
 *
 * @throws CliError if every run has found more values, because then others may follow
 */
async function runUntilDone(context: CliContext, access: AdminAccess, how: How): Promise<number> {
  for (let run = 1; ; run += 1) {
    const found = await runThrough(context, access, how);
    print(context, found, how);
    const { replaced, busy, unreadable } = sumOf(found);
    if (replaced + busy === 0) return unreadable;
    if (run === maxRuns && replaced > 0) {
      throw new CliError(
        'A gateway still seals with another key. Keep SECRETS_KEY_PREVIOUS, restart that gateway with SECRETS_KEY, and run this again.',
      );
    }
    if (run === maxRuns) return busy + unreadable;
  }
}

async function runOnce(context: CliContext, access: AdminAccess, how: How): Promise<number> {
  const found = await runThrough(context, access, how);
  print(context, found, how);
  const { replaced, unreadable } = sumOf(found);
  return replaced + unreadable;
}

async function runThrough(context: CliContext, access: AdminAccess, how: How): Promise<Run> {
  const run: Run = new Map();
  let page: Page = await access.run('secrets.reencrypt', how);
  add(run, page);
  while (page.next !== undefined) {
    if (context.interrupted.aborted)
      throw new CliError('Stopped. Run the command again to re-encrypt the rest.');
    page = await access.run('secrets.reencrypt', { ...how, cursor: page.next });
    add(run, page);
  }
  return run;
}

function add(run: Run, { column, replaced, busy, unreadable }: Page): void {
  const sum = run.get(column) ?? { replaced: 0, busy: 0, unreadable: {} };
  sum.replaced += replaced;
  sum.busy += busy;
  for (const [reason, count] of Object.entries(unreadable))
    sum.unreadable[reason] = (sum.unreadable[reason] ?? 0) + count;
  run.set(column, sum);
}

function sumOf(run: Run): { replaced: number; busy: number; unreadable: number } {
  const sum = { replaced: 0, busy: 0, unreadable: 0 };
  for (const { replaced, busy, unreadable } of run.values()) {
    sum.replaced += replaced;
    sum.busy += busy;
    for (const count of Object.values(unreadable)) sum.unreadable += count;
  }
  return sum;
}

function print(context: CliContext, run: Run, { dryRun }: How): void {
  for (const [column, { replaced, unreadable }] of run) {
    if (replaced > 0)
      context.print(`${column}: ${replaced} ${dryRun ? 'to re-encrypt' : 're-encrypted'}`);
    for (const [reason, count] of Object.entries(unreadable)) {
      context.note(`${column}: ${count} cannot be opened (${reason}) and stay as they are`);
    }
  }
}
