// What clients see of the gateways during a storm of the servers: lists, commands, readiness,
// notifications. Each observation has an instant, so that the report can tell what happened during
// which fault.

import { setTimeout as pause } from 'node:timers/promises';
import type { Received } from '../../support/receiver.ts';
import type { Member, MemberName } from './members.ts';
import type { Talker } from './population.ts';
import type { ServerWorld } from './server-world.ts';

export type Response = {
  readonly at: number;
  readonly tookMs: number;
  /** Undefined if there was no response. */
  readonly status: number | undefined;
};

export type CommandResponse = Response & { readonly isOwner: boolean };

export type Readiness = {
  readonly at: number;
  readonly name: MemberName;
  readonly status: number | undefined;
  readonly text: string;
};

export type NotificationSeen = { readonly at: number; readonly lagMs: number };

/** The clients that list calls, and how long each waits after a response. */
const listClients = 12;
const listPauseMs = 250;
const commandPauseMs = 1_000;
const readyPauseMs = 500;
/** A gateway that doesn't respond at all is given up on after this time. */
const patienceMs = 30_000;

export class Observations {
  readonly lists: Response[] = [];
  readonly commands: CommandResponse[] = [];
  readonly readiness: Readiness[] = [];
  readonly notifications: NotificationSeen[] = [];
  readonly #world: ServerWorld;
  readonly #loops: Promise<void>[] = [];
  #isStopping = false;
  /** The people without bots, whose calls get commands, with the gateway that owns each. */
  #targets: readonly { readonly callId: string; readonly owner: MemberName }[] = [];
  #commands = 0;

  constructor(world: ServerWorld) {
    this.#world = world;
    world.cluster.receiver.onReceived((entry) => this.#onNotification(entry));
  }

  start(): void {
    for (let client = 0; client < listClients; client += 1) {
      this.#keep(listPauseMs, () => this.#list(client));
    }
    this.#keep(commandPauseMs, () => this.#command());
    for (const member of this.#world.members) this.#keep(readyPauseMs, () => this.#ready(member));
  }

  /** From now on, commands are for these people. */
  aimAt(talkers: readonly Talker[], owners: ReadonlyMap<string, MemberName>): void {
    this.#targets = talkers.flatMap(({ kind, callId }) => {
      const owner = owners.get(callId);
      return kind === 'plain' && owner !== undefined ? [{ callId, owner }] : [];
    });
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.#loops);
  }

  #keep(pauseMs: number, work: () => Promise<void>): void {
    const run = async (): Promise<void> => {
      while (!this.#isStopping) {
        await work();
        await pause(pauseMs);
      }
    };
    this.#loops.push(run());
  }

  async #list(client: number): Promise<void> {
    const { gateway } = this.#world.members[client % 2 === 0 ? 0 : 1];
    const query = client % 4 < 2 ? '' : '?outcome=busy';
    this.lists.push(await timed(async () => (await gateway?.dialer.list(query))?.status));
  }

  /** Asks both gateways in turn to play a sound to someone. One of them doesn't own the call. */
  async #command(): Promise<void> {
    this.#commands += 1;
    const target = this.#targets[this.#commands % Math.max(1, this.#targets.length)];
    const member = this.#world.members[this.#commands % 4 < 2 ? 0 : 1];
    if (target === undefined || member.gateway === undefined) return;
    const { dialer } = member.gateway;
    const command = { command: 'play', sound: 'sound:storm', id: `probe-${this.#commands}` };
    const response = await timed(async () => (await dialer.command(target.callId, command)).status);
    this.commands.push({ ...response, isOwner: target.owner === member.name });
  }

  async #ready({ name, gateway }: Member): Promise<void> {
    const at = Date.now();
    const url = `${gateway?.runtime.httpUrl}/ready`;
    const signal = AbortSignal.timeout(patienceMs);
    const response = await fetch(url, { signal }).catch(() => undefined);
    const text = (await response?.text().catch(() => undefined)) ?? '';
    this.readiness.push({ at, name, status: response?.status, text: summaryOf(text) });
  }

  #onNotification({ body, status }: Received): void {
    const { timestamp } = body;
    if (status >= 300 || typeof timestamp !== 'string') return;
    const at = Date.now();
    this.notifications.push({ at, lagMs: at - Date.parse(timestamp) });
  }
}

async function timed(request: () => Promise<number | undefined>): Promise<Response> {
  const at = Date.now();
  const status = await request().catch(() => undefined);
  return { at, tookMs: Date.now() - at, status };
}

/** Returns the reasons of `/ready`, or what is degraded. */
function summaryOf(text: string): string {
  try {
    const { status, reasons, degraded } = JSON.parse(text) as Record<string, unknown>;
    return [status, reasons, degraded]
      .filter((part) => part !== undefined)
      .map(String)
      .join(': ');
  } catch {
    return 'no answer';
  }
}
