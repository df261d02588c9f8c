// Explains system errors in plain words.

const words: Readonly<Record<string, string>> = {
  EACCES: 'this user lacks the permission',
  EPERM: 'this user lacks the permission',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota of this user is used up',
  EFBIG: 'the file size limit is reached (ulimit -f)',
  ENOTDIR: 'a part of the path is a file',
  EEXIST: 'it is a file',
  EADDRINUSE: 'another program uses it',
  EADDRNOTAVAIL: 'this machine has no such address',
  ECONNREFUSED: 'no server listens there',
  ECONNRESET: 'the connection was closed',
  ENOTFOUND: 'no host has this name',
  EAI_AGAIN: 'the name could not be resolved',
  ETIMEDOUT: 'no answer',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
};

/** Returns the meaning and the code of an error or of its cause. */
export function reasonOf(error: unknown): string {
  const code = codeOf(error);
  if (code === undefined) return lastMessage(error);
  const meaning = words[code];
  return meaning === undefined ? `${code}, ${lastMessage(error)}` : `${meaning} (${code})`;
}

function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if ('code' in error && typeof error.code === 'string') return error.code;
  // Attempts to connect to several addresses usually fail for similar reasons, so we only report
  // the first reason.
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  return codeOf(error.cause);
}

function lastMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? lastMessage(error.cause) : error.message;
}
