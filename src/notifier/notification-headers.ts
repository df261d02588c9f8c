// The headers of a notification: the caller's as they were given, and ours, which win.

/** Later ones beat earlier ones whatever the case of the name. */
export function mergeHeaders(
  callers: Readonly<Record<string, string>>,
  ours: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const merged = new Map<string, readonly [string, string]>();
  for (const headers of [{ accept: '*/*' }, callers, ours]) {
    for (const [name, value] of Object.entries(headers)) {
      merged.set(name.toLowerCase(), [name, value]);
    }
  }
  return Object.fromEntries(merged.values());
}
