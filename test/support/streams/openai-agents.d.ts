// The part of @openai/agents-extensions that the tests use. The package's own types import those of
// a whole SDK, and some of them need a later compiler.

declare module '@openai/agents-extensions' {
  import type { WebSocket } from 'ws';

  export class TwilioRealtimeTransportLayer {
    constructor(options: { readonly twilioWebSocket: WebSocket });
    readonly status: 'connecting' | 'connected' | 'disconnected';
    connect(options: { readonly apiKey: string; readonly url: string }): Promise<void>;
    on(event: 'error', listener: (error: unknown) => void): void;
    on(event: '*', listener: (event: { readonly type: string }) => void): void;
    on(event: 'audio_interrupted', listener: () => void): void;
    close(): void;
  }
}
