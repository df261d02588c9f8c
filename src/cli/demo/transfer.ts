// The demo's transfer: an application that says "press one", hears the key, and connects the person to an agent; and what the two
// heard of each other.

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
/** Often enough for who waits, and nothing for the gateway. */
const pollMs = 100;

export type Transfer = {
  /** As each of the two measured it. */
  readonly person?: TalkSummary;
  readonly agent?: TalkSummary;
  /** As the gateway tells it in the call's end. */
  readonly msToTwoWayAudio?: number;
};

/** Until the call is over. An application of a customer would rather follow its events, see `src/api/examples`. */
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

/** What is missing of a transfer after which each of the two heard the other. */
export function problemsOfTransfer({
  person,
  agent,
  msToTwoWayAudio,
}: Transfer): readonly string[] {
  if (person === undefined || agent === undefined) return ['one side of the transfer told nothing'];
  const problems: string[] = [];
  if (agent.turns < 1) problems.push('the agent did not hear the person');
  // The prompt, the agent's hello, and what the agent answered.
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
