// Keeps the latest output of this worker's gateways and sipps, to help explain a failure.

const maxLogs = 12;
const maxLogChars = 8_000;

const logs: (() => string)[] = [];

export function keepLog(log: () => string): void {
  logs.push(log);
  logs.splice(0, logs.length - maxLogs);
}

/** Drops all logs, because another test file's logs can't explain a failure. */
export function forgetLogs(): void {
  logs.splice(0);
}

/** Returns the end of each log. */
export function lastLogs(): readonly string[] {
  return logs.map((log) => log().slice(-maxLogChars));
}
