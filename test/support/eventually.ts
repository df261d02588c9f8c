// Waits for a condition, with a bounded deadline: half a test's time, as a machine may stand still for some seconds, and a wait that
// ends early costs nothing.

const pollMs = 10;
const patienceMs = 30_000;

export async function eventually(
  condition: () => boolean | Promise<boolean>,
  what: string,
  withinMs = patienceMs,
): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`did not happen in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}
