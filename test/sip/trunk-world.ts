// A trunk with several gateways behind the real port and engine. Each gateway is a callee that does
// only what the test writes.

import type { DialTarget } from '../../src/calls/call-types.ts';
import type { CallId } from '../../src/calls/contract/identity.ts';
import type { PlaceRequest } from '../../src/calls/ports.ts';
import type { SipTimers, TlsTable } from '../../src/embedded/drachtio/engine.ts';
import { type Logger, silentLogger } from '../../src/lib/logger.ts';
import { createDrachtioSip, type DrachtioSip } from '../../src/sip/drachtio-sip.ts';
import type { SipLimits } from '../../src/sip/engine/sip-limits.ts';
import type { DnsClientOptions } from '../../src/sip/trunks/dns/dns-client.ts';
import type { Dice } from '../../src/sip/trunks/gateway-order.ts';
import { builtInTrunk, liveTrunks, loadTrunks, type Trunk } from '../../src/sip/trunks/trunks.ts';
import { eventually } from '../support/eventually.ts';
import { RawCallee } from '../support/raw-callee.ts';
import { RecordingLeg } from '../support/recording-leg.ts';
import { startEngine, type TestEngine } from '../support/sip-engine.ts';

const secret = 'cymru';

export const offer = [
  'v=0',
  'o=- 1 1 IN IP4 127.0.0.1',
  's=-',
  'c=IN IP4 127.0.0.1',
  't=0 0',
  'm=audio 20000 RTP/AVP 0',
  '',
].join('\r\n');
export const answer = offer.replace('20000', '30000');

export type TrunkWorld = AsyncDisposable & {
  readonly engines: readonly TestEngine[];
  readonly sip: DrachtioSip;
  /** In the order of their priorities. */
  readonly gateways: readonly RawCallee[];
  /** Returns `127.0.0.1:port` of a gateway. */
  readonly nameOf: (gateway: RawCallee) => string;
  readonly place: (
    target?: DialTarget,
    mayInvite?: () => boolean,
    /** Replaces members of the request, or adds them. */
    more?: Partial<PlaceRequest>,
  ) => {
    readonly leg: ReturnType<DrachtioSip['place']>;
    readonly observer: RecordingLeg;
  };
  /** Replaces the trunks, as a reload does. */
  readonly replace: (trunk: Partial<Trunk>) => void;
};

export async function openTrunkWorld(
  options: {
    readonly gateways?: number;
    readonly engines?: number;
    readonly trunk?: Partial<Trunk>;
    readonly timers?: Partial<SipTimers>;
    readonly limits?: Partial<SipLimits>;
    readonly dice?: Dice;
    readonly dns?: DnsClientOptions;
    readonly logger?: Logger;
  } = {},
): Promise<TrunkWorld> {
  const engines: TestEngine[] = [];
  for (let count = 0; count < (options.engines ?? 1); count += 1) {
    engines.push(
      await startEngine({ timers: options.timers ?? {}, tls: tlsTableOf(options.trunk ?? {}) }),
    );
  }
  const gateways: RawCallee[] = [];
  for (let count = 0; count < (options.gateways ?? 2); count += 1) {
    gateways.push(await RawCallee.start());
  }
  const trunkOf = (more: Partial<Trunk>): Trunk => ({
    ...builtInTrunk('carrier', { host: '127.0.0.1', transport: 'udp' }),
    gateways: gateways.map(({ port }, index) => ({
      ...{ host: '127.0.0.1', port, transport: 'udp' as const },
      ...{ priority: index, weight: 1 },
    })),
    ...more,
  });
  const directoryOf = (more: Partial<Trunk>) =>
    loadTrunks({ secrets: () => ({}), builtIn: [trunkOf(more)] });
  const trunks = liveTrunks(directoryOf(options.trunk ?? {}));
  const sip = createDrachtioSip({
    servers: engines.map(({ controlHost, controlPort }) => {
      return { host: controlHost, port: controlPort, secret };
    }),
    trunks,
    allowedNetworks: [],
    logger: options.logger ?? silentLogger,
    clock: { now: () => new Date() },
    limits: { disposeTimeoutMs: 300, reconnectMinMs: 20, ...options.limits },
    ...(options.dice !== undefined && { dice: options.dice }),
    ...(options.dns !== undefined && { dns: options.dns }),
  });
  await eventually(() => sip.connected().length === engines.length, 'all engines are connected');
  return {
    engines,
    sip,
    gateways,
    nameOf: (gateway) => `127.0.0.1:${gateway.port}`,
    place(target = { kind: 'tel', number: '15551230001' }, mayInvite = () => true, more = {}) {
      const observer = new RecordingLeg();
      const callId = 'call-1' as CallId;
      const from = { trunk: 'carrier', caller: '15550001111', offerSdp: offer };
      return {
        observer,
        leg: sip.place({ callId, target, ...from, mayInvite, ...more }, observer),
      };
    },
    replace(trunk) {
      for (const engine of engines) engine.useTls?.(tlsTableOf(trunk));
      trunks.replace(directoryOf(trunk));
      sip.watchGateways();
    },
    async [Symbol.asyncDispose]() {
      await sip[Symbol.asyncDispose]();
      for (const engine of engines) await engine.close();
      for (const gateway of gateways) await gateway[Symbol.asyncDispose]();
    },
  };
}

/** As the app passes it to the embedded engine. */
function tlsTableOf({ tls }: Partial<Trunk>): TlsTable {
  return tls === undefined ? {} : { carrier: tls };
}
