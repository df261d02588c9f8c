// Types for the part of drachtio-srf that a callee uses. The library's own types omit most of it,
// so we wrote these based on its source code.

import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';

export type CalleeRequest = {
  readonly method: string;
  readonly uri: string;
  readonly body?: string;
  on(event: 'cancel', listener: () => void): void;
};

export type CalleeResponse = {
  readonly finalResponseSent: boolean;
  send(
    status: number,
    options?: { readonly body?: string; readonly headers?: Record<string, string> },
    callback?: (error: unknown) => void,
  ): void;
  /** @param phrase the reason phrase. Default: the status's own */
  send(
    status: number,
    phrase: string | undefined,
    options: { readonly headers: Record<string, string> },
  ): void;
};

export type CalleeDialog = {
  /**
   * Sends a BYE. The callback receives the response, or an error if the engine couldn't send the
   * BYE.
   */
  destroy(
    options: { readonly headers?: Record<string, string> },
    callback: (error: unknown) => void,
  ): void;
  request(
    options: {
      readonly method: string;
      readonly headers: Record<string, string>;
      readonly body: string;
    },
    callback: (error: unknown) => void,
  ): void;
  on(event: 'destroy', listener: () => void): void;
  /** `modify` stands for a re-INVITE, `update` for an UPDATE. */
  on(
    event: 'modify' | 'update' | 'info' | 'options' | 'refer',
    listener: (request: CalleeRequest, response: CalleeResponse) => void,
  ): void;
};

export type SrfCallee = EventEmitter & {
  connect(options: { readonly host: string; readonly port: number; readonly secret: string }): void;
  disconnect(): void;
  invite(handler: (request: CalleeRequest, response: CalleeResponse) => void): void;
  options(handler: (request: CalleeRequest, response: CalleeResponse) => void): void;
  createUAS(
    request: CalleeRequest,
    response: CalleeResponse,
    options: { readonly localSdp: string; readonly headers: Record<string, string> },
  ): Promise<CalleeDialog>;
  readonly app: {
    readonly client: {
      readonly wp: { send(socket: Socket, message: string): string };
      readonly mapServer: Map<Socket, { pendingRequests: Map<string, () => void> }>;
    };
  };
};
