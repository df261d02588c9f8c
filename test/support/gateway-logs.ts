// What the gateways and sipps of this worker wrote, the last few of them: for who has to explain a failure.

const mostLogs = 12;
const mostOfALog = 8_000;

const logs: (() => string)[] = [];

export function keepLog(log: () => string): void {
  logs.push(log);
  logs.splice(0, logs.length - mostLogs);
}

/** Those of another test file say nothing about a failure. */
export function forgetLogs(): void {
  logs.splice(0);
}

/** The end of each. */
export function lastLogs(): readonly string[] {
  return logs.map((log) => log().slice(-mostOfALog));
}
