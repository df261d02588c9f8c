/** Waits for the work, but no longer than this; the work goes on. */
export async function atMost(work: Promise<unknown>, timeoutMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const bound = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, timeoutMs);
  });
  await Promise.race([work, bound]);
  clearTimeout(timer);
}
