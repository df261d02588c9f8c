// Work that is waited for, but not for ever. The work itself goes on.

/** Waits for the work, but no longer than this. */
export async function atMost(work: Promise<unknown>, timeoutMs: number): Promise<void> {
  await within(work, timeoutMs);
}

/** What comes of the work; undefined: it takes longer than this. */
export async function within<Value>(
  work: Promise<Value>,
  timeoutMs: number,
): Promise<Value | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const bound = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, timeoutMs, undefined);
  });
  try {
    return await Promise.race([work, bound]);
  } finally {
    clearTimeout(timer);
  }
}
