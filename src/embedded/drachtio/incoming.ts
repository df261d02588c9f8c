// A request from the network that an application is answering.

import type { ControlClient } from './control-client.ts';
import type { Dialog } from './dialog.ts';
import type { ReceivedRequest } from './sip-stack.ts';

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
  madeDialog?: boolean;
};
