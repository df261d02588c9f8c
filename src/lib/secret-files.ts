// Reads secrets from files: if the variable NAME isn't set, NAME_FILE names a file that contains
// its value, as Docker and Kubernetes mount secrets. Files keep secrets out of `docker inspect` and
// of the environment that child processes inherit.

import { closeSync, openSync, readSync } from 'node:fs';

/** Secrets are much shorter. The bound protects against a path such as /dev/zero. */
const maxFileBytes = 64 * 1_024;

type Environment = Readonly<Record<string, string | undefined>>;

type SecretValue = { readonly value: string | undefined } | { readonly problem: string };

/**
 * Reads each variable, or the file that NAME_FILE names. An empty NAME_FILE counts as unset. The
 * problems name variables and paths, and never quote a value.
 */
export function secretsOf(names: readonly string[], env: Environment) {
  const secrets: Record<string, string | undefined> = {};
  const problems: string[] = [];
  for (const name of names) {
    const secret = secretOf(name, env);
    if ('problem' in secret) problems.push(secret.problem);
    else secrets[name] = secret.value;
  }
  return { secrets, problems };
}

function secretOf(name: string, env: Environment): SecretValue {
  const value = env[name];
  const path = env[`${name}_FILE`];
  if (path === undefined || path === '') return { value };
  if (value !== undefined && value !== '')
    return { problem: `${name}: contradicts ${name}_FILE; set only one of them` };
  try {
    const text = readBounded(path);
    if (text === undefined)
      return { problem: `${name}_FILE: ${path} is larger than ${maxFileBytes} bytes` };
    // Editors and `echo` end a file with a newline, which doesn't belong to the secret.
    const secret = text.replace(/\r?\n$/, '');
    return secret === '' ? { problem: `${name}_FILE: ${path} is empty` } : { value: secret };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return { problem: `${name}_FILE: ${path} cannot be read (${code ?? String(error)})` };
  }
}

/** Reads synchronously, because the configuration is complete before anything else starts. */
function readBounded(path: string): string | undefined {
  const buffer = Buffer.alloc(maxFileBytes + 1);
  const file = openSync(path, 'r');
  try {
    let length = 0;
    // A pipe returns its content in parts. The file may be one, as in `NAME_FILE=<(command)`.
    for (let bytes = -1; bytes !== 0 && length < buffer.length; length += bytes)
      bytes = readSync(file, buffer, length, buffer.length - length, null);
    return length > maxFileBytes ? undefined : buffer.toString('utf8', 0, length);
  } finally {
    closeSync(file);
  }
}
