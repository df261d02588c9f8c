// A valid body with one member changed.

/**
 * Returns the body with one member changed, given its dotted path. Undefined removes the member.
 */
export function changed(body: object, path: string, value: unknown): Record<string, unknown> {
  const copy = structuredClone(body) as Record<string, unknown>;
  const names = path.split('.');
  const last = names.pop() ?? '';
  const parent = names.reduce<Record<string, unknown>>(
    (node, name) => node[name] as Record<string, unknown>,
    copy,
  );
  if (value === undefined) delete parent[last];
  else parent[last] = value;
  return copy;
}
