// A checkout as a careful administrator has it: cloned under umask 077. The test types the commands
// of sip-config/README.md into it.

import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { repository, textOf } from '../../deployment/compose.ts';
import { run } from './run.ts';

export type Checkout = AsyncDisposable & {
  readonly folder: string;
  /**
   * Runs a line of shell, such as a command of sip-config/README.md, and returns its standard
   * output.
   */
  sh(line: string): Promise<string>;
  compose(...args: readonly string[]): Promise<string>;
  write(path: string, text: string): Promise<void>;
  append(path: string, text: string): Promise<void>;
  edit(path: string, change: (text: string) => string): Promise<void>;
};

export async function makeCheckout(): Promise<Checkout> {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-checkout-'));
  const listed = await run(
    'git',
    ['ls-files', '--cached', '--others', '--exclude-standard', '-z'],
    {
      cwd: repository,
    },
  );
  for (const path of listed.split('\0').filter((each) => each !== '')) {
    const target = join(folder, path);
    await mkdir(dirname(target), { recursive: true, mode: 0o700 });
    await copyFile(join(repository, path), target);
    await chmod(target, 0o600);
  }
  const write = (path: string, text: string) =>
    writeFile(join(folder, path), text, { mode: 0o600 });
  const edit = async (path: string, change: (text: string) => string) =>
    write(path, change(await readFile(join(folder, path), 'utf8')));
  const sh = (line: string) => run('bash', ['-ec', `umask 077\n${line}`], { cwd: folder });
  return {
    folder,
    sh,
    compose: (...args) => run('docker', ['compose', ...args], { cwd: folder }),
    write,
    edit,
    append: (path, text) => edit(path, (before) => before + text),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

/**
 * Returns the command in the section "Production" of sip-config/README.md that begins with
 * `beginning`: a block of commands or a single command between backquotes.
 */
export function commandOfProduction(beginning: string): string {
  const [, section = ''] =
    /^## Production$([\s\S]*?)^## /m.exec(textOf('sip-config/README.md')) ?? [];
  const blocks = [...section.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, text = '']) =>
    text.replaceAll(/^ {2}/gm, ''),
  );
  const inline = [...section.replaceAll(/```[\s\S]*?```/g, '').matchAll(/`([^`]+)`/g)].map(
    ([, text = '']) => text.replaceAll(/\s+/g, ' '),
  );
  const found = [...blocks, ...inline].find((command) => command.startsWith(beginning));
  if (found === undefined)
    throw new Error(
      `"Production" in sip-config/README.md has no command that begins with ${beginning}`,
    );
  return found;
}
