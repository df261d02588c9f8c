// A call's AMD events as each consumer sees them: bots on NATS, flows in the context, and dialers
// at their notify URL.

import type { AmdEvent } from '../../src/calls/detection/amd-event.ts';
import { eventually } from './eventually.ts';
import type { Laptop } from './laptop.ts';
import { glance, type Notification } from './receiver.ts';

export type ReceivedEvents = Awaited<ReturnType<typeof receivedEvents>>;

function onNats({ events }: Laptop, callId: string): AmdEvent[] {
  return events
    .filter((event) => event.callId === callId && event.type === 'amd')
    .map((event) => event.data['amd'] as AmdEvent);
}

export async function untilDetectionStopped(laptop: Laptop, callId: string): Promise<void> {
  const stopped = () => onNats(laptop, callId).some(({ event }) => event === 'amd_stopped');
  await eventually(stopped, 'detection has stopped', 40_000);
}

/** Waits for the call to end, then returns its events. */
export async function receivedEvents(laptop: Laptop, callId: string) {
  const all = await laptop.receiver.untilEnded(callId);
  const context = (await laptop.gateway.dialer.context(callId)).body as {
    session: { UserSession: { amd: string[]; amdInfo: Record<string, unknown> } };
  };
  const events = onNats(laptop, callId);
  return {
    all,
    events,
    onNats: events.map(({ event }) => event),
    notified: glance(all).filter((word) => word.startsWith('amd_')),
    inContext: context.session.UserSession.amd,
    info: context.session.UserSession.amdInfo,
    end: all.at(-1) as Notification,
    /** Returns the evidence in the notification of an AMD event. */
    evidence: (event: string) =>
      all.find((body) => body.machineDetection === event && body.status === 'Call-In-Progress')?.[
        'amd'
      ] as Record<string, unknown> | undefined,
  };
}
