// Waits for a condition until a deadline. The error says what was awaited.

const DEADLINE_MS = 40_000;
const POLL_MS = 2;

export async function until(condition: () => boolean, complaint: () => string): Promise<void> {
  const end = performance.now() + DEADLINE_MS;
  while (!condition()) {
    if (performance.now() > end) throw new Error(`Waited in vain: ${complaint()}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
