// Calls whose audio crosses an impaired network: what the gateway says about their quality, beside
// what the network did.

import type { CallQuality } from '../../src/calls/life/call-quality.ts';
import type { MediaEvent } from '../../src/calls/media.ts';
import type { MediaGateway } from '../../src/media/media-port.ts';
import { answerFor, callId, portOf } from '../media/support/gateway.ts';
import { eventually } from './eventually.ts';
import { ImpairingRelay, type Impairments } from './impairing-relay.ts';
import { ReportingPhone } from './reporting-phone.ts';

type Line = { readonly toGateway: Impairments; readonly toPhone: Impairments };

export const impairedLines = {
  'a good line': { toGateway: { seed: 1 }, toPhone: { seed: 2 } },
  'random loss': { toGateway: { seed: 3, loss: 0.05 }, toPhone: { seed: 4, loss: 0.1 } },
  'loss in bursts': {
    toGateway: { seed: 5, loss: 0.1, burst: 8 },
    toPhone: { seed: 6, loss: 0.05, burst: 4 },
  },
  'jitter and reordering': {
    toGateway: { seed: 7, jitterMs: 40, reorder: 0.05 },
    toPhone: { seed: 8 },
  },
  'loss and repeated packets': {
    toGateway: { seed: 9, loss: 0.05, repeat: 0.1 },
    toPhone: { seed: 10 },
  },
  'a long way with all of it': {
    toGateway: { seed: 11, delayMs: 80, loss: 0.03, jitterMs: 20, reorder: 0.02, repeat: 0.02 },
    toPhone: { seed: 12, delayMs: 80, loss: 0.02 },
  },
} as const satisfies Readonly<Record<string, Line>>;

export type LineName = keyof typeof impairedLines;

export type ImpairedCall = {
  readonly quality: CallQuality | undefined;
  /** What the network did, and what the phone reported last. */
  readonly real: {
    readonly lossPercent: number;
    readonly jitterMs: number;
    /** The least that a report and its answer took together. */
    readonly delayMs: number;
    readonly remote: { readonly lossPercent: number; readonly jitterMs: number };
  };
};

/** The phone talks for `packets` × 20 ms. */
export async function callOver(
  media: MediaGateway,
  line: LineName,
  packets: number,
): Promise<ImpairedCall> {
  await using relay = await ImpairingRelay.open(impairedLines[line]);
  await using phone = await ReportingPhone.open();
  const events: MediaEvent[] = [];
  const session = await media.open(callId, { observe: (event) => events.push(event) });
  if (session === undefined) throw new Error('no media session');
  relay.connect(portOf(session.offerSdp), phone.ports);
  session.applyAnswer(answerFor(relay.ports.rtp, `a=rtcp:${relay.ports.rtcp}\r\n`), 'answer');
  await phone.talk(relay.phonePorts, packets);
  await eventually(() => phone.reports.length > 0, 'the gateway reports');
  await relay.drain();
  phone.report(relay.phonePorts.rtcp);
  const { lost, expected, jitterMs } = phone.reported;
  await relay.drain();
  session.send({ kind: 'requestQuality' });
  const qualityOf = () => events.find((event) => event.kind === 'quality');
  await eventually(() => qualityOf() !== undefined, 'the gateway says how the call sounded');
  session.close();
  return {
    quality: qualityOf()?.quality,
    real: {
      lossPercent: relay.toGateway.lossPercent,
      jitterMs: relay.toGateway.meanJitterMs,
      delayMs: 2 * Math.min(...relay.reportDelaysMs),
      remote: { lossPercent: (100 * lost) / expected, jitterMs },
    },
  };
}
