// What a phone says to a bot goes through the gateway's jitter buffer: a machine that is busy loses a packet now and then, as any path
// does, and one time without loss is enough.

import { eventually } from '../eventually.ts';
import type { BotConnection } from './scripted-bot.ts';
import type { StreamCallee } from './stream-callee.ts';

const maxTries = 5;
const frameBytes = 160;
/** More than the buffer holds, and what the bot was told meanwhile. */
const framesBehind = 10;

/** `heard`: so much of it is enough. */
export async function speakUntilBotHears(
  callee: StreamCallee,
  connection: BotConnection,
  said: Buffer,
  heard: Buffer = said,
): Promise<void> {
  const isHeard = () => connection.heard.includes(heard);
  for (let tries = 0; tries < maxTries; tries += 1) {
    const before = connection.of('media').length;
    const after = before + said.length / frameBytes + framesBehind;
    await callee.speak(said);
    await eventually(() => isHeard() || connection.of('media').length > after, 'it went by');
    if (isHeard()) return;
  }
  throw new Error(`the bot did not hear it to the byte, said ${maxTries} times`);
}
