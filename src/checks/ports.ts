// Checks that the gateway can listen on its addresses and ports.

import { createSocket } from 'node:dgram';
import { createServer, isIPv6 } from 'node:net';
import type { Config } from '../config.ts';
import { type Check, type Finding, failed, ok, skipped } from './check.ts';
import { reasonOf } from './reasons.ts';

export function portsCheck(
  config: Pick<Config, 'http' | 'sip' | 'media' | 'drachtioServers'>,
  isRunning = false,
): Check {
  const { http, sip, media, drachtioServers } = config;
  const run = async (): Promise<Finding> => {
    if (isRunning) return skipped('the gateway that runs here uses them');
    const problems = await Promise.all([
      tcpProblem('HTTP', http),
      // With a drachtio-server, that server listens on the SIP ports instead.
      drachtioServers === undefined ? sipProblem(sip) : undefined,
      udpProblem('MEDIA', { host: media.host, port: 0 }),
    ]);
    const found = problems.filter((problem) => problem !== undefined);
    if (found.length > 0) return failed(found.join('; '));
    const sipPort = drachtioServers === undefined ? `, SIP ${named(sip)}` : '';
    return ok(`API ${named(http)}${sipPort}, RTP ${media.host}:${media.portMin}-${media.portMax}`);
  };
  return { name: 'ports', run };
}

async function sipProblem(sip: Address): Promise<string | undefined> {
  return (await tcpProblem('SIP', sip)) ?? (await udpProblem('SIP', sip));
}

type Address = { readonly host: string; readonly port: number };

function named({ host, port }: Address): string {
  return port === 0 ? `${host}, a free port` : `${host}:${port}`;
}

async function tcpProblem(what: string, { host, port }: Address): Promise<string | undefined> {
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host, port }, resolve);
    });
    await new Promise((resolve) => server.close(resolve));
    return undefined;
  } catch (error) {
    return problemOf(what, 'TCP', { host, port }, error);
  }
}

async function udpProblem(what: string, { host, port }: Address): Promise<string | undefined> {
  const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4');
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject);
      socket.bind({ address: host, port, exclusive: true }, resolve);
    });
    return undefined;
  } catch (error) {
    return problemOf(what, 'UDP', { host, port }, error);
  } finally {
    socket.close();
  }
}

function problemOf(
  what: string,
  transport: string,
  { host, port }: Address,
  error: unknown,
): string {
  const code = (error as NodeJS.ErrnoException).code;
  const isPort = code === 'EADDRINUSE' || code === 'EACCES';
  return isPort
    ? `${what}_PORT: ${transport} port ${port} of ${host} cannot be used: ${reasonOf(error)}`
    : `${what}_HOST: ${host} cannot be listened on: ${reasonOf(error)}`;
}
