// What a developer has on a laptop: a gateway with nothing configured, a receiver of its notifications, and a bot that listens
// to its events on NATS.

import { connect, type NatsConnection } from '@nats-io/transport-node';
import { makeSeededDataDir } from './databases.ts';
import { startGateway } from './gateway-process.ts';
import { startReceiver } from './receiver.ts';

/** The members that tests look at; an event has more. */
export type PublishedEvent = {
  readonly id: string;
  readonly type: string;
  readonly callId: string;
  readonly eventSequence: number;
  readonly data: Readonly<Record<string, unknown>>;
};

export type Laptop = Awaited<ReturnType<typeof startLaptop>>;

/** Variables: of the gateway, beyond those that every gateway under test has. */
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
    callback: (_error, message) => void events.push(message.json<PublishedEvent>()),
  });
  // On its way is not enough: the first call's events come by another connection, which may be served before this one.
  await nats.flush();
  return {
    gateway,
    receiver,
    nats,
    events,
    /** With detection on and notifications sent to the receiver, unless told otherwise. */
    dial: (target: string, more: Record<string, unknown> = {}) =>
      gateway.dialer.dial({
        target,
        notifyurl: receiver.url,
        machineDetection: 'detect',
        ...more,
      }),
    /**
     * Ticks of 20 ms of the playout that came too late to send, as long as this gateway lives: those that a call has missed are no more.
     * An upper bound: a late tick counts once for its worker and once for each of its calls.
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
