// The headers of a notification: the caller's as they were given, and ours, which win.

/** `ours` beats `callers` whatever the case of the name. */
export function mergeHeaders(
  callers: Readonly<Record<string, string>>,
  ours: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const taken = new Set(Object.keys(ours).map((name) => name.toLowerCase()));
  const kept = Object.entries(callers).filter(([name]) => !taken.has(name.toLowerCase()));
  return { accept: '*/*', ...Object.fromEntries(kept), ...ours };
}
