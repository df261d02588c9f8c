// The demo's calls, and the notifications that each call must produce. Other notifications may
// arrive between the expected ones.

import type { AmdEventName } from '../../calls/detection/amd-event.ts';
import type { SandboxName } from '../../embedded/sandbox/sandbox-numbers.ts';
import { readBody, type ShownBody } from '../notification-lines.ts';
import type { ReceivedNotification } from '../receiver.ts';

export type Scene = {
  readonly name: SandboxName;
  /** A bot talks to the person who answers. */
  readonly hasBot?: true;
  /** The call has a plan for leaving a message. */
  readonly hasMessage?: true;
  /**
   * An application plays a menu. If the person presses the key, the application connects them to an
   * agent.
   */
  readonly hasMenu?: true;
  /** Expected notifications in order. The entries of an inner array may arrive in any order. */
  readonly expected: readonly (Expectation | readonly Expectation[])[];
};

type Expectation = {
  readonly status: 'Answered' | 'Call-In-Progress' | 'completed' | 'Failed';
  readonly machineDetection?: AmdEventName;
  readonly reason?: string;
  readonly reasonCode?: string;
};

const amd = (machineDetection: AmdEventName): Expectation => ({
  status: 'Call-In-Progress',
  machineDetection,
});

export const scenes: readonly Scene[] = [
  {
    name: 'person',
    expected: [
      { status: 'Answered', reasonCode: 'OK' },
      amd('amd_human_detected'),
      amd('amd_stopped'),
      { status: 'completed', machineDetection: 'amd_human_detected' },
    ],
  },
  {
    name: 'talker',
    hasBot: true,
    expected: [
      { status: 'Answered', reasonCode: 'OK' },
      amd('amd_human_detected'),
      amd('amd_stopped'),
      {
        status: 'completed',
        machineDetection: 'amd_human_detected',
        reasonCode: 'Bot-disconnected',
      },
    ],
  },
  {
    name: 'voicemail',
    hasMessage: true,
    expected: [
      { status: 'Answered', reasonCode: 'OK' },
      amd('amd_machine_detected'),
      [amd('amd_machine_stopped_speaking'), amd('amd_tone_detected')],
      amd('amd_stopped'),
      {
        status: 'completed',
        machineDetection: 'amd_machine_detected',
        reasonCode: 'Bot-disconnected',
      },
    ],
  },
  {
    name: 'person-presses-1',
    hasMenu: true,
    expected: [
      { status: 'Answered', reasonCode: 'OK' },
      amd('amd_human_detected'),
      amd('amd_stopped'),
      // The agent hung up.
      {
        status: 'completed',
        machineDetection: 'amd_human_detected',
        reasonCode: 'Bot-disconnected',
      },
    ],
  },
  {
    name: 'busy',
    expected: [{ status: 'Failed', reason: '486 Busy Here', reasonCode: 'Busy here' }],
  },
];

/** Lists everything that is wrong with a scene's notifications. */
export function problemsOf(
  scene: Scene,
  received: readonly ReceivedNotification[],
): readonly string[] {
  const bodies = received.map((notification) => readBody(notification.body));
  const problems: string[] = [];
  if (received.some((notification) => !notification.verified))
    problems.push('a signature is wrong');
  if (bodies.some((body, index) => body?.sequence !== index + 1)) {
    problems.push('the sequence has gaps or is out of order');
  }
  let from = 0;
  for (const step of scene.expected) {
    const wanted = 'status' in step ? [step] : step;
    const found = wanted.map((expectation) =>
      bodies.findIndex((body, index) => index >= from && matches(body, expectation)),
    );
    for (const [position, index] of found.entries()) {
      if (index < 0) problems.push(`missing: ${describe(wanted[position])}`);
    }
    from = Math.max(from, ...found.map((index) => index + 1));
  }
  return problems;
}

function matches(body: ShownBody | undefined, expectation: Expectation): boolean {
  if (body?.status !== expectation.status) return false;
  const { machineDetection, reason, reasonCode } = expectation;
  return (
    (machineDetection === undefined || body.machineDetection === machineDetection) &&
    (reason === undefined || body.reason === reason) &&
    (reasonCode === undefined || body.reasonCode === reasonCode)
  );
}

function describe(expectation: Expectation | undefined): string {
  return Object.values(expectation ?? {}).join(', ');
}

export function isEnd(body: ShownBody | undefined): boolean {
  return body?.status === 'completed' || body?.status === 'Failed';
}
