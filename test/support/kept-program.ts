// Runs a server program for as long as the test process lives. A shell waits for the end of its
// standard input, which happens even if the test process is killed, and then ends the program.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';

export type KeptProgram = {
  /** The id of the program's own process. */
  readonly pid: number;
  hasEnded(): boolean;
  /** Ends the program with the signal. Idempotent. */
  end(signal?: 'INT' | 'QUIT' | 'TERM' | 'KILL'): Promise<void>;
};

export type KeptProgramOptions = {
  readonly program: string;
  readonly args: readonly string[];
  readonly logFile: string;
  readonly cwd: string;
  /** The user to run the program as. Default: this process's user. */
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
};

/**
 * The log exists as soon as the shell has printed the program's id. The shell then reads the
 * signal's name. If the test process is gone, the program gets a SIGQUIT.
 */
const script = `log="$1"; shift; : >>"$log"; "$@" >>"$log" 2>&1 & program=$!; echo $program
read signal || { signal=QUIT; orphaned=yes; }
children=$(cat /proc/$program/task/$program/children)
# A frozen program handles the signal as soon as it continues.
kill -s "$signal" $program; kill -s CONT $program $children
# Some programs, e.g. baresip, ignore SIGQUIT.
[ -z "$orphaned" ] || { sleep 5; kill -s KILL $program; } 2>/dev/null &
wait $program`;

export async function keepProgram(options: KeptProgramOptions): Promise<KeptProgram> {
  const { program, args, logFile, cwd, user } = options;
  const shell = spawn('sh', ['-c', script, 'sh', logFile, program, ...args], {
    ...user,
    cwd,
    stdio: ['pipe', 'pipe', 'ignore'],
    // Ctrl-C must not reach the server before its clients are gone.
    detached: true,
  });
  const exited = once(shell, 'exit');
  // The program may end before it gets its signal.
  shell.stdin.on('error', () => undefined);
  const [first] = (await once(shell.stdout, 'data')) as [Buffer];
  const pid = Number(first.toString());
  return {
    pid,
    hasEnded: () => shell.exitCode !== null || shell.signalCode !== null || !isAlive(pid),
    end: async (signal = 'TERM') => {
      shell.stdin.end(`${signal}\n`);
      await exited;
    },
  };
}

/** A program that has ended is a zombie until its shell waits for it. */
function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return !stat.slice(stat.lastIndexOf(')') + 2).startsWith('Z');
  } catch {
    return false;
  }
}
