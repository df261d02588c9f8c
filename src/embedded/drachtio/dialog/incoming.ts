// Requests from the network that an application is answering, found by the id that it answers with.

import type { ControlClient } from '../control/control-client.ts';
import type { ReceivedRequest } from '../sip-stack.ts';
import type { Dialog } from './dialog.ts';

export type Incoming = {
  readonly transactionId: string;
  readonly received: ReceivedRequest;
  readonly client: ControlClient;
  /** The dialog that it came in, or that our answer made. */
  dialog: Dialog | undefined;
  /** The id that the call has or would get. */
  readonly callDialogId: string;
  /** Fixed by the first response that carries one. */
  toTag: string | undefined;
  /** True when `dialog` came to be by our answer to this request. */
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
