// Finds out which program is listening on a port, by exchanging the first lines of the NATS
// protocol with it. That lets us tell our private server from other programs, and a working server
// from one that accepts connections but doesn't respond.

import { connect } from 'node:net';
import type { NatsIdentity } from './nats-identity.ts';

export type ProbeResult = 'private server' | 'another program' | 'nothing';

/**
 * INFO and PONG fit into a few hundred bytes, so a program that sends more before the PONG can't be
 * our private server.
 */
const maxReplyBytes = 64 * 1024;

/**
 * Returns `private server` if there's a nats-server with the expected name that accepts the
 * credentials and answers a PING.
 */
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
      if (isAnotherProgram(received, identity)) return finish('another program');
      if (!greeted && received.includes('\r\n')) {
        greeted = true;
        socket.write(greeting(identity));
      }
      if (received.includes('PONG\r\n')) finish('private server');
    });
  });
}

function isAnotherProgram(received: string, identity: NatsIdentity): boolean {
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
