// A developer's laptop: a gateway without configuration, a receiver for its notifications, and a
// bot that reads its events from NATS.

import { connect, type NatsConnection } from '@nats-io/transport-node';
import { makeSeededDataDir } from './databases.ts';
import { startGateway } from './gateway-process.ts';
import { readEvent } from './published-events.ts';
import { startReceiver } from './receiver.ts';

/** The fields of an event that the tests use. The event contains more. */
export type PublishedEvent = {
  readonly id: string;
  readonly type: string;
  readonly callId: string;
  readonly eventSequence: number;
  readonly data: Readonly<Record<string, unknown>>;
};

export type Laptop = Awaited<ReturnType<typeof startLaptop>>;

/**
 * `variables`: environment variables of the gateway, in addition to those of every gateway under
 * test.
 */
export async function startLaptop(variables: Readonly<Record<string, string>> = {}) {
  const dataDir = await makeSeededDataDir();
  const receiver = await startReceiver();
  const gateway = await startGateway(dataDir.path, variables);
  const url = new URL(gateway.runtime.natsUrl);
  const nats: NatsConnection = await connect({
    servers: url.host,
    user: url.username,
    pass: url.password,
  });
  const events: PublishedEvent[] = [];
  nats.subscribe('offhook.call.>', {
    callback: (_error, message) => void events.push(readEvent(message)),
  });
  // Make sure that NATS has processed the subscription. The first call's events come over a
  // different connection, which NATS might serve first.
  await nats.flush();
  return {
    gateway,
    receiver,
    nats,
    events,
    /** Dials. Default: with detection, and with notifications to the receiver. */
    dial: (target: string, more: Record<string, unknown> = {}) =>
      gateway.dialer.dial({
        target,
        notifyurl: receiver.url,
        machineDetection: 'detect',
        ...more,
      }),
    /**
     * Returns the number of late 20 ms playout ticks since the gateway started. A call may have
     * missed fewer, because we count a late tick once for its worker and once for each call.
     */
    async lateTicks(): Promise<number> {
      const text = await (await fetch(`${gateway.runtime.httpUrl}/metrics`)).text();
      const counted = (name: string) => Number(new RegExp(`^${name} (\\d+)`, 'm').exec(text)?.[1]);
      return (
        counted('offhook_media_ticks_late_total') + counted('offhook_rtp_packets_unsent_total')
      );
    },
    async close(): Promise<void> {
      await nats.close();
      await gateway.terminate();
      await receiver.close();
      await dataDir.remove();
    },
  };
}
