// Errors of the system, in words.

const words: Readonly<Record<string, string>> = {
  EACCES: 'this user may not',
  EPERM: 'this user may not',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota of this user is used up',
  EFBIG: 'files may not become that large (ulimit -f)',
  ENOTDIR: 'a part of the path is a file',
  EEXIST: 'it is a file',
  EADDRINUSE: 'another program has it',
  EADDRNOTAVAIL: 'this machine has no such address',
  ECONNREFUSED: 'no server listens there',
  ECONNRESET: 'the connection was ended',
  ENOTFOUND: 'there is no host of that name',
  EAI_AGAIN: 'the name could not be resolved',
  ETIMEDOUT: 'no answer',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
};

/** Of the error itself, or of what caused it: the code, and what it means. */
export function reasonOf(error: unknown): string {
  const code = codeOf(error);
  if (code === undefined) return lastMessage(error);
  const meaning = words[code];
  return meaning === undefined ? `${code}, ${lastMessage(error)}` : `${meaning} (${code})`;
}

function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if ('code' in error && typeof error.code === 'string') return error.code;
  // Of attempts on several addresses, the first says as much as the others.
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  return codeOf(error.cause);
}

function lastMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? lastMessage(error.cause) : error.message;
}
