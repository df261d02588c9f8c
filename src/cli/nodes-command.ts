// Implements `offhook nodes`, which lists the gateway processes that share the database.

import type { AdminAnswer } from '../api/admin/admin-operations.ts';
import { openAdminAccess } from './admin-access.ts';
import type { CliContext } from './cli-context.ts';

type Node = AdminAnswer<'nodes.list'>['nodes'][number];

export async function listNodes(
  context: CliContext,
  options: { readonly json?: boolean },
): Promise<void> {
  await using access = await openAdminAccess(context);
  const { nodes } = await access.run('nodes.list', {});
  if (nodes.every(({ state }) => state === 'lost')) {
    context.note('No gateway runs on this database.');
  }
  if (options.json === true) for (const node of nodes) context.print(JSON.stringify(node));
  else for (const line of inColumns(nodes.map(cells))) context.print(line);
}

function cells({ nodeId, state, calls, leaseAgeMs, version, startedAt }: Node): readonly string[] {
  return [
    nodeId,
    state,
    `${calls} ${calls === 1 ? 'call' : 'calls'}`,
    `lease ${formatAge(leaseAgeMs)} old`,
    version,
    `since ${startedAt}`,
  ];
}

function formatAge(ageMs: number): string {
  return ageMs < 120_000
    ? `${(ageMs / 1_000).toFixed(1)} s`
    : `${Math.round(ageMs / 60_000)} minutes`;
}

function inColumns(rows: readonly (readonly string[])[]): readonly string[] {
  const widthOf = (column: number) => Math.max(...rows.map((row) => row[column]?.length ?? 0));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widthOf(column)))
      .join('  ')
      .trimEnd(),
  );
}
