// Requests from the network that an application has yet to answer, by the transaction id that its
// answer will name.

import type { ControlClient } from '../control/control-client.ts';
import type { ReceivedRequest } from '../sip-stack.ts';
import type { Dialog } from './dialog.ts';

export type Incoming = {
  readonly transactionId: string;
  readonly received: ReceivedRequest;
  readonly client: ControlClient;
  /** The dialog in which the request arrived, or that its answer created. */
  dialog: Dialog | undefined;
  /** Id of the call's dialog, even if there's no dialog yet. */
  readonly callDialogId: string;
  /** Set by the first response that carries a To tag. */
  toTag: string | undefined;
  /** True if it was the answer to this request that created `dialog`. */
  madeDialog: boolean;
};

export class IncomingTable {
  readonly #byId = new Map<string, Incoming>();
  readonly #byReceived = new Map<ReceivedRequest, Incoming>();

  add(incoming: Incoming): void {
    this.#byId.set(incoming.transactionId, incoming);
    this.#byReceived.set(incoming.received, incoming);
  }

  byId(transactionId: string): Incoming | undefined {
    return this.#byId.get(transactionId);
  }

  byReceived(received: ReceivedRequest): Incoming | undefined {
    return this.#byReceived.get(received);
  }

  remove(incoming: Incoming): void {
    this.#byId.delete(incoming.transactionId);
    this.#byReceived.delete(incoming.received);
  }

  ofClient(client: ControlClient): Incoming[] {
    return [...this.#byId.values()].filter((incoming) => incoming.client === client);
  }
}
