// Helpers for the two phones of a bridge. An event, or the 200 to an offer, may arrive before the
// media worker has bridged the phones. Audio that is sent too early is lost, or passes with the
// previous codec or direction. If a process stands still for a tenth of a second during a word, the
// word has a gap.

import { eventually } from '../eventually.ts';
import type { StreamCallee } from './stream-callee.ts';
import { speech } from './stream-rig.ts';

/**
 * Waits until audio has passed in both directions. From then on a key that is pressed once is
 * passed on.
 */
export async function hearEachOther(person: StreamCallee, agent: StreamCallee): Promise<void> {
  const hello = speech(160, 77);
  await eventually(() => {
    person.send(hello);
    agent.send(hello);
    return agent.heard.includes(hello) && person.heard.includes(hello);
  }, 'the phones hear each other');
}

/**
 * Speaks until the listener has heard the audio in one piece. `heard`: the audio in the codec of
 * the listener. Default: `said`.
 */
export async function speakUntilHeard(
  speaker: StreamCallee,
  listener: StreamCallee,
  said: Buffer,
  {
    heard = said,
    payloadType = 0,
  }: { readonly heard?: Buffer; readonly payloadType?: number } = {},
): Promise<void> {
  const isHeard = () => listener.heard.includes(heard);
  await eventually(async () => {
    if (!isHeard()) await speaker.speak(said, payloadType);
    return isHeard();
  }, 'the listener hears the speaker');
}
