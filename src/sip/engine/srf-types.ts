// Types for the part of drachtio-srf that we use, written after its source code. The package's own
// types omit most of this.

import type { Server, Socket } from 'node:net';

export type SipMessage = {
  get(name: string): string | undefined;
  has(name: string): boolean;
  readonly body?: string;
  readonly payload?: readonly { readonly type?: string | null; readonly content?: string }[];
};

export type RequestOptions = {
  method: string;
  uri?: string;
  headers?: Record<string, string>;
  body?: string;
  /** URI to send the request to. Default: the host in the request URI. */
  proxy?: string;
  stackTxnId?: string;
  stackDialogId?: string;
};

/** Sends the ACK for a 2xx, or the PRACK for a reliable provisional response. */
export type AckFunction = (options?: {
  body?: string;
  headers?: Readonly<Record<string, string>>;
}) => void;

export type SentRequest = SipMessage & {
  readonly uri: string;
  readonly stackTxnId: string;
  on(event: 'response', listener: (response: ReceivedResponse, ack: AckFunction) => void): void;
  /** Emitted when the far end sends an UPDATE while the INVITE is pending. */
  on(event: 'update', listener: (request: ReceivedRequest, response: Responder) => void): void;
};

export type ReceivedResponse = SipMessage & {
  readonly status: number;
  readonly reason: string;
  /** Empty if the stack generated the response. */
  readonly source_address: string;
  readonly source_port: number;
  readonly protocol: string;
  readonly stackDialogId?: string;
};

export type ReceivedRequest = SipMessage & {
  readonly method: string;
  /** `application` if drachtio-server itself generated the request, which is always a BYE. */
  readonly source: 'network' | 'application';
  readonly stackDialogId?: string;
};

export type Responder = {
  send(
    status: number,
    options?: { body?: string; headers?: Record<string, string> },
    callback?: (error: unknown) => void,
  ): void;
};

type AddRoute = (handler: (request: ReceivedRequest, response: Responder) => void) => void;

export type SrfClient = {
  listen(options: { server: Server; secret: string }): void;
  on(
    event: 'connect',
    listener: (error: Error | null, hostports?: string, version?: string) => void,
  ): void;
  on(event: 'error', listener: (error: Error) => void): void;
  request(
    socket: Socket,
    uri: string,
    options: RequestOptions,
    callback: (error: Error | null, request?: SentRequest) => void,
  ): void;
  use(handler: (request: ReceivedRequest, response: Responder, next: () => void) => void): void;
  invite: AddRoute;
  options: AddRoute;
  info: AddRoute;
  message: AddRoute;
  notify: AddRoute;
  publish: AddRoute;
  refer: AddRoute;
  register: AddRoute;
  subscribe: AddRoute;
  readonly app: {
    readonly client: {
      readonly wp: {
        send(socket: Socket, message: string): string;
        on(event: 'msg', listener: (socket: Socket, frame: string) => void): void;
        prependListener(event: 'msg', listener: () => void): void;
      };
      readonly mapServer: Map<Socket, { pendingRequests: Map<string, (token: string[]) => void> }>;
    };
  };
};
