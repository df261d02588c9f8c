// An unknown member is ignored, so that later versions may add some; but `timeoutInMS` was meant to do something: silence would
// be a trap.

/** Members of `value` that differ from one of `shape` in case, `_` or `-` only; each with what is meant. */
export function misspellings(
  value: unknown,
  shape: object,
  prefix: string,
): readonly { readonly path: string; readonly message: string }[] {
  if (typeof value !== 'object' || value === null) return [];
  const bare = (name: string) => name.toLowerCase().replaceAll(/[_-]/g, '');
  const byBareName = new Map(Object.keys(shape).map((name) => [bare(name), name]));
  return Object.keys(value).flatMap((name) => {
    const meant = byBareName.get(bare(name));
    return meant === undefined || meant === name
      ? []
      : [{ path: `${prefix}${name}`, message: `is not known; ${meant} is` }];
  });
}
