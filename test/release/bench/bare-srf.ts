// The baseline: drachtio-srf alone on the embedded engine. It places calls and waits for their end,
// with the same callee and the same concurrency, and does nothing else.

import { once } from 'node:events';
import Srf from 'drachtio-srf';
import { startSipEngineThread } from '../../../src/embedded/drachtio/engine-thread.ts';
import { startSipp } from '../../support/sipp.ts';

const offer = [
  'v=0',
  'o=- 1 1 IN IP4 127.0.0.1',
  's=-',
  'c=IN IP4 127.0.0.1',
  't=0 0',
  'm=audio 40000 RTP/AVP 0 101',
  'a=rtpmap:0 PCMU/8000',
  'a=rtpmap:101 telephone-event/8000',
  '',
].join('\r\n');

/** Returns calls per second. A call lasts from the INVITE to the BYE of the callee. */
export async function bareLoop(options: {
  readonly concurrency: number;
  readonly seconds: number;
  readonly callMs: number;
}): Promise<number> {
  const engine = await startSipEngineThread({
    sipHost: '127.0.0.1',
    sipPort: 0,
    controlHost: '127.0.0.1',
    controlPort: 0,
    secret: 'bench',
    logLevel: 'silent',
    nodeId: 'bench',
  });
  const sipp = await startSipp({
    scenario: 'load',
    calls: 1_000_000,
    hangUpAfterMs: options.callMs,
    keepMessages: false,
    timeoutMs: (options.seconds + 60) * 1_000,
  });
  const srf = new Srf();
  const connected = once(srf, 'connect');
  await srf.connect({ host: engine.controlHost, port: engine.controlPort, secret: 'bench' });
  await connected;
  const end = performance.now() + options.seconds * 1_000;
  let calls = 0;
  const caller = async (): Promise<void> => {
    while (performance.now() < end) {
      const dialog = await srf.createUAC(sipp.uri(), { localSdp: offer });
      await new Promise<void>((resolve) => dialog.on('destroy', () => resolve()));
      calls += 1;
    }
  };
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: options.concurrency }, caller));
  const rate = calls / ((performance.now() - startedAt) / 1_000);
  srf.disconnect();
  await sipp.stop();
  await engine.close();
  return rate;
}
