// The bots of a storm. Their process is killed and stopped like the other parts. The opening and
// closing times of each connection are recorded.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { BotKind, FromBots, ToBots } from './bots-process.ts';

/** Instants by `Date.now()`. */
export type BotConnection = {
  readonly bot: BotKind;
  readonly number: string;
  readonly openedAt: number;
  closedAt?: number;
};

export class FaultyBots implements AsyncDisposable {
  readonly connections: BotConnection[] = [];
  #child: ChildProcess;
  #port: number;
  /** The open connections of the current process, by the numbers that it gave them. */
  #open = new Map<number, BotConnection>();

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.#port = port;
    this.#watch(child);
  }

  static async start(): Promise<FaultyBots> {
    const { child, port } = await launch(0);
    return new FaultyBots(child, port);
  }

  url(bot: BotKind, number: string): string {
    return `ws://127.0.0.1:${this.#port}/${bot}/${number}`;
  }

  get open(): number {
    return this.connections.filter(({ closedAt }) => closedAt === undefined).length;
  }

  async kill(): Promise<void> {
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
    // The process can no longer report these connections, but the system has closed their sockets.
    for (const connection of this.#open.values()) connection.closedAt ??= Date.now();
    this.#open = new Map();
  }

  /** Starts a new process after `kill`, on the same port. */
  async revive(): Promise<void> {
    const { child } = await launch(this.#port);
    this.#child = child;
    this.#watch(child);
  }

  stop(): void {
    this.#child.kill('SIGSTOP');
  }

  resume(): void {
    this.#child.kill('SIGCONT');
  }

  /**
   * Makes the bots that did not read their sockets read them, so that they see the ends of their
   * calls.
   */
  calm(): void {
    this.#child.send({ kind: 'read' } satisfies ToBots);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.resume();
    await this.kill();
  }

  #watch(child: ChildProcess): void {
    const open = this.#open;
    child.on('message', (message: FromBots) => {
      if (message.kind === 'opened') {
        const { bot, number } = message;
        const connection: BotConnection = { bot, number, openedAt: Date.now() };
        open.set(message.id, connection);
        this.connections.push(connection);
      } else if (message.kind === 'closed') {
        const connection = open.get(message.id);
        if (connection !== undefined) connection.closedAt ??= Date.now();
        open.delete(message.id);
      }
    });
  }
}

async function launch(port: number): Promise<{ child: ChildProcess; port: number }> {
  const program = fileURLToPath(new URL('./bots-process.ts', import.meta.url));
  const child = fork(program, [String(port)], { execArgv: ['--import', 'tsx'] });
  const listening = new Promise<number>((resolve, reject) => {
    child.once('message', (message: FromBots) => {
      if (message.kind === 'listening') resolve(message.port);
    });
    child.once('exit', () => reject(new Error('the bots did not start')));
  });
  return { child, port: await listening };
}
