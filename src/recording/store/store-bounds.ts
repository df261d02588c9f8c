// How long a store may take.

/** A connection takes less than a second unless the server is away. */
export const connectTimeoutMs = 10_000;
/** Small requests: the server's own work. Object stores answer within a few seconds under load. */
export const requestTimeoutMs = 30_000;
/**
 * The slowest store that keeps up with two calls. A slower one would fall further and further
 * behind, so we report it as slow rather than wait.
 */
const minBytesPerSecond = 32_000;

/** Returns how long a transfer of this size may take. */
export function transferTimeoutMs(bytes: number): number {
  return Math.ceil(requestTimeoutMs + (bytes / minBytesPerSecond) * 1_000);
}

/** The name of the object that a check writes. Every node has its own, so checks don't collide. */
export function probeName(): string {
  return `offhook-check-${process.pid}-${Math.random().toString(36).slice(2, 10)}`;
}
