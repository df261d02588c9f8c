// Two phones of a bridge. What says that they are bridged, an event or the 200 to an offer, was asked of the media worker and not done
// by it yet: who speaks before it has come to that goes unheard, or is heard by the codec or the direction of before. And who stands
// still for a tenth of a second in mid-word has silence in it.

import { eventually } from '../eventually.ts';
import type { StreamCallee } from './stream-callee.ts';
import { speech } from './stream-rig.ts';

/** Until audio has gone both ways: from then on a key is passed on that is pressed once. */
export async function hearEachOther(person: StreamCallee, agent: StreamCallee): Promise<void> {
  const hello = speech(160, 77);
  await eventually(() => {
    person.send(hello);
    agent.send(hello);
    return agent.heard.includes(hello) && person.heard.includes(hello);
  }, 'they hear each other');
}

/** Said again where it was not heard in one piece. `heard`: as the other one's codec has it. */
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
  }, 'one hears the other');
}
