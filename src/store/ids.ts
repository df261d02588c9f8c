// Identifiers that come from outside: of accounts, bots and tables. They are tokens of NATS subjects and segments of paths.

const idPattern = /^[A-Za-z0-9_-]{1,128}$/;

export function isId(text: string): boolean {
  return idPattern.test(text);
}
