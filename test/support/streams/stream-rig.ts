// Everything that tests of calls with streams need: a gateway as on a laptop, bots on loopback, and
// phones that keep their RTP.

import { eventually } from '../eventually.ts';
import { type PublishedEvent, startLaptop } from '../laptop.ts';
import { seeded } from '../wav.ts';
import { ScriptedBot, type ScriptedBotOptions } from './scripted-bot.ts';
import { StreamCallee } from './stream-callee.ts';

export async function startStreamRig(variables: Readonly<Record<string, string>> = {}) {
  const laptop = await startLaptop(variables);
  const open: AsyncDisposable[] = [];
  const eventsOf = (callId: string): readonly PublishedEvent[] =>
    laptop.events.filter((event) => event.callId === callId);
  return {
    laptop,
    async startBot(options?: ScriptedBotOptions): Promise<ScriptedBot> {
      const bot = await ScriptedBot.start(options);
      open.push(bot);
      return bot;
    },
    /** Dials a phone. Resolves when the phone has its INVITE. Default: without detection. */
    async call(stream: object | null, more: Readonly<Record<string, unknown>> = {}) {
      const { callee, placed } = await StreamCallee.called((target) =>
        laptop.dial(target, { stream, machineDetection: 'disabled', ...more }),
      );
      open.push(callee);
      return { callee, callId: placed.callId };
    },
    /** Disposes of the resource at the end of the test. */
    keep: (one: AsyncDisposable) => void open.push(one),
    eventsOf,
    typesOf: (callId: string) => eventsOf(callId).map(({ type }) => type),
    /** Waits for the terminal event of the call and returns its data. */
    async endOf(callId: string): Promise<PublishedEvent['data']> {
      const isEnd = ({ type }: PublishedEvent) => type === 'completed' || type === 'failed';
      await eventually(() => eventsOf(callId).some(isEnd), 'the call ends');
      return eventsOf(callId).find(isEnd)?.data ?? {};
    },
    lateTicks: () => laptop.lateTicks(),
    /** Closes the bots and phones of one test. */
    async reset(): Promise<void> {
      for (const one of open.splice(0)) await one[Symbol.asyncDispose]();
    },
    close: () => laptop.close(),
  };
}

export type StreamRig = Awaited<ReturnType<typeof startStreamRig>>;

/**
 * Returns audio without a byte of silence. It is noise, so no two frames are alike, and no part of
 * it occurs in audio of another seed.
 */
export function speech(length: number, seed = 0): Buffer {
  const random = seeded(seed);
  return Buffer.from(Uint8Array.from({ length }, () => random() * 0x7f));
}
