// Requests from the network that are still waiting for an application's response, by transaction
// id. The application's response contains the same id.

import type { ControlClient } from '../control/control-client.ts';
import type { ReceivedRequest } from '../sip-stack.ts';
import type { Dialog } from './dialog.ts';

export type Incoming = {
  readonly transactionId: string;
  readonly received: ReceivedRequest;
  readonly client: ControlClient;
  /** The dialog in which the request arrived, or that was created by a response to it. */
  dialog: Dialog | undefined;
  /** Id of the call's dialog, even if the dialog doesn't exist yet. */
  readonly callDialogId: string;
  /** Set by the first response that contains a To tag. */
  toTag: string | undefined;
  /** True if `dialog` was created by a response to this request. */
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
