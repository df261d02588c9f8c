// Connects the question whether a late node is alive with the ways that it can take. It's asked
// over HTTP and over NATS at once, and one answer is enough: NATS may be away together with the
// database, and the HTTP server may listen on an address that only its own machine can reach.

import { networkInterfaces } from 'node:os';
import type { EventConnection } from '../events/connection.ts';
import { requestNodeAlive, serveAliveQuestions } from '../events/node-requests.ts';
import { requestAlive } from '../http/alive-route.ts';
import { type Deliver, LateNodes } from '../recovery/late-nodes.ts';
import type { Environment } from './environment.ts';
import type { Node } from './nodes.ts';

/** More than one machine has in networks that its nodes share. */
const maxUrls = 8;

/** Serves other nodes' questions over NATS, and returns what asks them. */
export function openLateNodes(
  { config, logger, closers }: Pick<Environment, 'config' | 'logger' | 'closers'>,
  node: Pick<Node, 'store' | 'answer'>,
  connection: EventConnection,
): LateNodes {
  const serving = serveAliveQuestions(connection, config.ownerId, node.answer, logger);
  closers.add('answers to other nodes', () => serving.stop());
  return new LateNodes({ store: node.store, deliver: deliverOver(connection), logger });
}

/** @internal */
export function deliverOver(connection: EventConnection): Deliver {
  return async ({ ownerId, urls }, { body, read }, timeoutMs) => {
    // Ends the other requests once one has been answered.
    const answered = new AbortController();
    const timeout = setTimeout(() => answered.abort(), timeoutMs);
    const { signal } = answered;
    const stateIn = async (answer: Promise<unknown>) => {
      const state = read(await answer);
      if (state === undefined) throw new Error('another process answered');
      return state;
    };
    const answers = [
      requestNodeAlive(connection, ownerId, body, timeoutMs),
      ...urls.map((url) => requestAlive(url, body, signal)),
    ];
    try {
      return await Promise.any(answers.map(stateIn));
    } catch {
      return undefined;
    } finally {
      clearTimeout(timeout);
      answered.abort();
    }
  };
}

/**
 * Returns the base URLs at which other nodes may reach this HTTP server. If it listens on all
 * addresses, these are the machine's addresses, and last the loopback address, for nodes on the
 * same machine. The same address may belong to another machine too. A process there can't answer
 * the question.
 */
export function reachableUrls(
  host: string,
  port: number,
  interfaces: Pick<ReturnType<typeof networkInterfaces>, string> = networkInterfaces(),
): readonly string[] {
  if (host !== '0.0.0.0' && host !== '::') return [urlOf(host, port)];
  const addresses = Object.values(interfaces)
    .flatMap((each) => each ?? [])
    // An IPv6 address of a single link means nothing without the name of the interface.
    .filter(({ address }) => !address.startsWith('fe80:'))
    .filter(({ family }) => host === '::' || family === 'IPv4')
    .toSorted((one, other) => Number(one.internal) - Number(other.internal));
  return addresses.slice(0, maxUrls).map(({ address }) => urlOf(address, port));
}

function urlOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
