// Speaks to a bot through the gateway's jitter buffer. A busy machine sometimes loses a packet, as
// any network path does, so the speech is repeated until one attempt has no loss.

import { eventually } from '../eventually.ts';
import type { BotConnection } from './scripted-bot.ts';
import type { StreamCallee } from './stream-callee.ts';

const maxTries = 5;
const frameBytes = 160;
/**
 * More frames than the jitter buffer holds, including those that the bot received in the meantime.
 */
const framesBehind = 10;

/** Speaks until the bot has heard `heard`. Default: all that was said. */
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
    await eventually(
      () => isHeard() || connection.of('media').length > after,
      'the bot has received everything that was said',
    );
    if (isHeard()) return;
  }
  throw new Error(`the bot did not hear the audio to the byte in ${maxTries} attempts`);
}
