// Sends the same request repeatedly on keep-alive connections, in a thread of its own. Reports how
// many requests were answered.

import { Agent, request } from 'node:http';
import { parentPort, workerData } from 'node:worker_threads';

export type Load = {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  readonly connections: number;
  readonly milliseconds: number;
};

const load = workerData as Load;
const agent = new Agent({ keepAlive: true, maxSockets: load.connections });

function once(): Promise<number> {
  return new Promise((resolve, reject) => {
    const { url, method, headers } = load;
    const sent = request(url, { agent, method, headers }, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode ?? 0));
    });
    sent.on('error', reject);
    sent.end(load.body);
  });
}

const startedAt = performance.now();
let answered = 0;
let failed = 0;
const client = async (): Promise<void> => {
  while (performance.now() - startedAt < load.milliseconds) {
    if ((await once()) === 200) answered += 1;
    else failed += 1;
  }
};
await Promise.all(Array.from({ length: load.connections }, client));
const seconds = (performance.now() - startedAt) / 1_000;
agent.destroy();
parentPort?.postMessage({ perSecond: answered / seconds, failed });
