// Decides which application receives a request outside a dialog. If several applications have a
// route for the method, they take turns.

import type { ControlClient } from '../control/control-client.ts';

/**
 * Maximum number of routes (methods and record kinds) per connection. In practice, applications use
 * about a dozen.
 */
const maxRoutesPerClient = 64;

type Turn = { readonly clients: ControlClient[]; next: number };

export class RouteTable {
  readonly #turns = new Map<string, Turn>();
  readonly #counts = new Map<ControlClient, number>();

  /**
   * Adds a route. Adding the same route again has no effect, because drachtio-srf resends all of
   * its routes whenever it adds one. Returns false if the client has too many routes.
   */
  add(client: ControlClient, verb: string): boolean {
    const turn = this.#turns.get(verb) ?? { clients: [], next: 0 };
    if (turn.clients.includes(client)) return true;
    const count = this.#counts.get(client) ?? 0;
    if (count >= maxRoutesPerClient) return false;
    turn.clients.push(client);
    this.#turns.set(verb, turn);
    this.#counts.set(client, count + 1);
    return true;
  }

  remove(client: ControlClient, verb: string): void {
    const turn = this.#turns.get(verb);
    const index = turn?.clients.indexOf(client) ?? -1;
    if (turn === undefined || index < 0) return;
    turn.clients.splice(index, 1);
    if (turn.clients.length === 0) this.#turns.delete(verb);
    this.#counts.set(client, (this.#counts.get(client) ?? 1) - 1);
  }

  removeClient(client: ControlClient): void {
    for (const verb of [...this.#turns.keys()]) this.remove(client, verb);
    this.#counts.delete(client);
  }

  next(verb: string): ControlClient | undefined {
    const turn = this.#turns.get(verb);
    if (turn === undefined) return undefined;
    for (let tries = turn.clients.length; tries > 0; tries -= 1) {
      const client = turn.clients[turn.next % turn.clients.length];
      turn.next = (turn.next + 1) % turn.clients.length;
      if (client?.alive === true) return client;
    }
    return undefined;
  }

  /** Returns all connections with this route. */
  all(verb: string): readonly ControlClient[] {
    return this.#turns.get(verb)?.clients ?? [];
  }
}
