// Asks what listens on a port: speaks the first lines of the NATS protocol, so that our own server can be told from
// another program, and a server that only accepts from one that answers.

import { connect } from 'node:net';
import type { NatsIdentity } from './nats-identity.ts';

export type ProbeResult = 'ours' | 'another program' | 'nothing';

/** INFO and PONG are a few hundred bytes; what says more before it is our server is none. */
const maxReplyBytes = 64 * 1024;

/** `ours`: a nats-server of our name that takes our credentials and answers a PING. */
export function probeNats(identity: NatsIdentity, timeoutMs: number): Promise<ProbeResult> {
  return new Promise((resolve) => {
    let received = '';
    let greeted = false;
    const socket = connect({ host: '127.0.0.1', port: identity.port });
    const finish = (result: ProbeResult) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(result);
    };
    const timer = setTimeout(
      () => finish(socket.connecting ? 'nothing' : 'another program'),
      timeoutMs,
    );
    socket.setEncoding('utf8');
    socket.on('error', () => finish(greeted ? 'another program' : 'nothing'));
    socket.on('close', () => finish('another program'));
    socket.on('data', (chunk: string) => {
      received += chunk;
      if (isNotOurs(received, identity)) return finish('another program');
      if (!greeted && received.includes('\r\n')) {
        greeted = true;
        socket.write(greeting(identity));
      }
      if (received.includes('PONG\r\n')) finish('ours');
    });
  });
}

function isNotOurs(received: string, identity: NatsIdentity): boolean {
  if (received.length > maxReplyBytes || received.includes('-ERR')) return true;
  return received.includes('\r\n') && serverName(received) !== identity.serverName;
}

function greeting(identity: NatsIdentity): string {
  const options = { verbose: false, user: identity.user, pass: identity.password, lang: 'node' };
  return `CONNECT ${JSON.stringify(options)}\r\nPING\r\n`;
}

function serverName(received: string): string | undefined {
  const info = /^INFO (\{.*?\})\s*\r\n/s.exec(received)?.[1];
  if (info === undefined) return undefined;
  try {
    const parsed: unknown = JSON.parse(info);
    return typeof parsed === 'object' && parsed !== null && 'server_name' in parsed
      ? String(parsed.server_name)
      : undefined;
  } catch {
    return undefined;
  }
}
