// The part of drachtio-srf that a callee uses, typed as its source behaves (its own types leave most of this out).

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
  ): void;
};

export type CalleeDialog = {
  /** BYE; calls back with its response, or with the engine's refusal to send it. */
  destroy(options: object, callback: (error: unknown) => void): void;
  on(event: 'destroy', listener: () => void): void;
  /** Re-INVITE and UPDATE. */
  on(
    event: 'modify' | 'update' | 'info' | 'options',
    listener: (request: CalleeRequest, response: CalleeResponse) => void,
  ): void;
};

export type SrfCallee = {
  connect(options: { readonly host: string; readonly port: number; readonly secret: string }): void;
  disconnect(): void;
  on(
    event: 'connect',
    listener: (error: Error | null, hostports?: string, version?: string) => void,
  ): void;
  on(event: 'error', listener: (error: Error) => void): void;
  invite(handler: (request: CalleeRequest, response: CalleeResponse) => void): void;
  options(handler: (request: CalleeRequest, response: CalleeResponse) => void): void;
  createUAS(
    request: CalleeRequest,
    response: CalleeResponse,
    options: { readonly localSdp: string },
  ): Promise<CalleeDialog>;
};
