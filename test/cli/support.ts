// Runs commands and the gateway from the build as separate processes. Also runs commands within the
// test process, for tests of their output.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { readRuntime } from '../../src/app/runtime-file.ts';
import type { CliContext } from '../../src/cli/cli-context.ts';
import { loadConfig } from '../../src/config.ts';
import { eventually } from '../support/eventually.ts';
import { nodeOptions } from '../support/gateway-process.ts';

/**
 * Some processes create a database, or wait for a call to end, before they print the line. Creating
 * one takes 6 s of a core, which a whole run of the tests shares.
 */
const lineTimeoutMs = 60_000;

export type Finished = { readonly code: number | null; readonly out: string; readonly err: string };

export type Running = {
  readonly process: ChildProcess;
  readonly finished: Promise<Finished>;
  /** The next line of standard output. */
  line(): Promise<string>;
};

export function run(
  file: 'cli' | 'demo' | 'main',
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Running {
  const child = spawn(process.execPath, [...nodeOptions, `dist/${file}.js`, ...args], {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  let err = '';
  const lines: string[] = [];
  let hasEnded = false;
  createInterface({ input: child.stdout }).on('line', (line) => {
    out += `${line}\n`;
    lines.push(line);
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    err += chunk;
  });
  const finished = new Promise<Finished>((resolve) => {
    child.once('close', (code) => {
      hasEnded = true;
      resolve({ code, out, err });
    });
  });
  return {
    process: child,
    finished,
    line: async () => {
      await eventually(
        () => lines.length > 0 || hasEnded,
        () => `another line of ${file} ${args.join(' ')}; so far:\n${out}${err}`,
        lineTimeoutMs,
      );
      const line = lines.shift();
      if (line === undefined) throw new Error(`${file} ended before another line:\n${out}${err}`);
      return line;
    },
  };
}

/** Runs a command within this process, and returns its output as text. */
export async function printedBy(
  env: Readonly<Record<string, string>>,
  command: (context: CliContext) => Promise<void>,
): Promise<{ readonly out: string; readonly notes: string }> {
  const config = loadConfig(env);
  const lines: string[] = [];
  const notes: string[] = [];
  await command({
    config,
    gateway: () => readRuntime(config),
    print: (line) => void lines.push(line),
    note: (line) => void notes.push(line),
    interrupted: new AbortController().signal,
  });
  return { out: lines.join('\n'), notes: notes.join('\n') };
}

export async function temporaryFolder(): Promise<string> {
  return await mkdtemp(join(tmpdir(), 'offhook-cli-'));
}

export async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
}
