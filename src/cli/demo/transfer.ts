// The demo's transfer. An application plays "press one", waits for the person to press the key, and
// connects the person to an agent. The report says whether the person and the agent heard each
// other.

import { setTimeout as pause } from 'node:timers/promises';
import { type SandboxName, sandboxNumbers } from '../../embedded/sandbox/sandbox-numbers.ts';
import type { TalkSummary } from '../../embedded/sandbox/talker.ts';
import type { CallDetails } from '../../interactions/call-queries.ts';
import { createCallTimeline } from '../calls/call-timeline.ts';
import type { BotClient } from '../gateway-client.ts';

type Entry = CallDetails['timeline'][number];

export const menuSound = 'demo-menu';
export const menuRecording = 'press-one';
const key = '1';
/** This is short enough for a person who is waiting, but doesn't put much load on the gateway. */
const pollMs = 100;

export type Transfer = {
  /** Measured by the person's phone. */
  readonly person?: TalkSummary;
  /** Measured by the agent's phone. */
  readonly agent?: TalkSummary;
  /**
   * Time from the agent's answer until there is audio in both directions. The gateway reports it
   * when the transfer ends.
   */
  readonly msToTwoWayAudio?: number;
};

/**
 * Offers the menu until the call ends. The demo polls the call, but a real application should
 * follow the call's events instead (see `src/api/examples`).
 */
export async function offerMenu(client: BotClient, callId: string): Promise<void> {
  const timeline = createCallTimeline();
  for (;;) {
    const call = await client.call(callId);
    for (const entry of timeline.take(call.timeline, performance.now())) {
      await answer(client, callId, entry);
    }
    if (call.state === 'ended') return;
    await pause(pollMs);
  }
}

async function answer(client: BotClient, callId: string, { type, data }: Entry): Promise<void> {
  const { amd, digit } = data as { readonly amd?: { readonly event: string }; digit?: string };
  if (type === 'amd' && amd?.event === 'amd_human_detected') {
    await client.command(callId, { command: 'play', sound: `sound:${menuSound}`, id: 'menu' });
  }
  if (type === 'dtmf' && digit === key) {
    const to = `tel:${numberOf('agent')}`;
    await client.command(callId, { command: 'transfer', to, id: 'agent' });
  }
}

export function numberOf(name: SandboxName): string {
  return sandboxNumbers.find((row) => row.name === name)?.number ?? '';
}

/**
 * Lists everything that went wrong in the transfer. The person and the agent must hear each other.
 */
export function problemsOfTransfer({
  person,
  agent,
  msToTwoWayAudio,
}: Transfer): readonly string[] {
  if (person === undefined || agent === undefined)
    return ['one side of the transfer reported nothing'];
  const problems: string[] = [];
  if (agent.turns < 1) problems.push('the agent did not hear the person');
  // The three turns are the menu, the agent's hello and the agent's answer.
  if (person.turns < 3) problems.push(`the person heard ${person.turns} of 3 turns`);
  if (msToTwoWayAudio === undefined) problems.push('no audio went both ways');
  return problems;
}

export function describeTransfer({ person, agent, msToTwoWayAudio }: Transfer): string {
  const seconds = (agent?.voiceMs ?? 0) / 1_000;
  const turns = Math.max(0, (person?.turns ?? 0) - 1);
  return [
    `audio went both ways ${msToTwoWayAudio ?? '?'} ms after the agent's answer`,
    `the agent heard ${seconds.toFixed(1)} s of the person's voice`,
    `the person heard the agent ${turns} times`,
  ].join(', ');
}
