// A notification receiver. It is a real HTTP server that keeps what it receives, checks signatures
// with a second implementation, and rejects requests on demand.

import { createHmac } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { eventually } from './eventually.ts';
import { freeUdpPort } from './free-port.ts';

export type Received = {
  readonly headers: IncomingHttpHeaders;
  readonly rawBody: string;
  readonly body: Notification;
  readonly status: number;
};

/** The fields of a notification that the tests use. The body contains more. */
export type Notification = {
  readonly eventId: string;
  readonly callId: string;
  readonly sequence: number;
  readonly status: 'Answered' | 'Call-In-Progress' | 'Event' | 'completed' | 'Failed';
  readonly machineDetection?: string;
  readonly reason: string;
  readonly reasonCode: string;
  readonly [member: string]: unknown;
};

export async function startReceiver(port?: number) {
  const received: Received[] = [];
  /** Bodies that are not valid JSON. */
  const unreadable: string[] = [];
  let answer: (notification: Notification) => number | Promise<number> = () => 200;
  let listener: (entry: Received) => void = () => undefined;
  const server = createServer((request, response) => {
    // Not a notification. Perhaps a port scanner, or a gateway looking for the previous server on
    // this port.
    if (request.method !== 'POST') {
      response.writeHead(405).end();
      return;
    }
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    const respond = async (): Promise<void> => {
      const rawBody = Buffer.concat(chunks).toString('utf8');
      const body = parse(rawBody);
      if (body === undefined) {
        unreadable.push(rawBody);
        response.writeHead(400).end();
        return;
      }
      const status = await answer(body);
      const entry = { headers: request.headers, rawBody, body, status };
      received.push(entry);
      response.writeHead(status).end();
      listener(entry);
    };
    request.on('end', () => void respond());
  });
  const ownPort = port ?? (await freeUdpPort());
  await new Promise<void>((resolve) => server.listen(ownPort, '127.0.0.1', resolve));
  const accepted = () => received.filter((entry) => entry.status < 300);
  return {
    url: `http://127.0.0.1:${ownPort}/notify`,
    port: ownPort,
    received,
    /** Returns the requests that got a 2xx response, in order of arrival. */
    accepted,
    of: (callId: string) =>
      accepted()
        .map((entry) => entry.body)
        .filter((body) => body.callId === callId),
    answerWith: (next: (notification: Notification) => number | Promise<number>) => {
      answer = next;
    },
    onReceived: (next: (entry: Received) => void) => {
      listener = next;
    },
    /** Waits for a call's terminal notification, then returns all its notifications. */
    async untilEnded(callId: string, timeoutMs = 40_000): Promise<readonly Notification[]> {
      await eventually(() => this.of(callId).some(isTerminal), `the end of ${callId}`, timeoutMs);
      return this.of(callId);
    },
    async close(): Promise<void> {
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
      const [first] = unreadable;
      if (first !== undefined) throw new Error(`a notification that is not JSON: ${first}`);
    },
  };
}

function parse(rawBody: string): Notification | undefined {
  try {
    return JSON.parse(rawBody) as Notification;
  } catch {
    return undefined;
  }
}

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

export function isTerminal(notification: Notification): boolean {
  return notification.status === 'completed' || notification.status === 'Failed';
}

/**
 * Summarises notifications in one word each: `Answered`, the AMD event's name, `Event`, `completed`
 * or `Failed`.
 */
export function glance(notifications: readonly Notification[]): string[] {
  return notifications.map(({ status, machineDetection }) =>
    status === 'Call-In-Progress' ? String(machineDetection) : status,
  );
}

/** Whether the signature is valid. Implements the documented header independently of our code. */
export function signatureIsRight(received: Received, secret: string): boolean {
  const header = String(received.headers['gateway-signature']);
  const parts = header.split(',').map((part) => part.split('=') as [string, string]);
  const time = parts.find(([name]) => name === 't')?.[1] ?? '';
  const expected = createHmac('sha256', secret).update(`${time}.${received.rawBody}`).digest('hex');
  return parts.some(([name, value]) => name === 'v1' && value === expected);
}
