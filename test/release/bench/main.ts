// `npm run bench -- <name> [options]` runs a measurement. Machines are noisy: compare only the
// ratios of one run.

import { benchAmd } from './amd.ts';
import { benchAmdCalls } from './amd-calls.ts';
import { benchBridge } from './bridge.ts';
import { benchBytes } from './bytes.ts';
import { benchCalls } from './calls.ts';
import { benchCaptures } from './captures.ts';
import { benchCompanion } from './companion.ts';
import { benchConsole } from './console.ts';
import { benchDeliveries } from './deliveries.ts';
import { benchIdle } from './idle.ts';
import { benchImport } from './import.ts';
import { benchLists } from './lists.ts';
import { benchNodes } from './nodes.ts';
import { benchQuality } from './quality.ts';
import { benchRecording } from './recording.ts';
import { benchRules } from './rules.ts';
import { benchSoak } from './soak.ts';
import { benchSrtp } from './srtp.ts';
import { benchStalledReceivers } from './stalled-receivers.ts';
import { benchStreams } from './streams.ts';
import { benchVoicemail } from './voicemail.ts';

const benches: Readonly<Record<string, (args: readonly string[]) => Promise<void>>> = {
  amd: benchAmd,
  'amd-calls': benchAmdCalls,
  bridge: benchBridge,
  bytes: benchBytes,
  calls: benchCalls,
  captures: benchCaptures,
  deliveries: benchDeliveries,
  companion: benchCompanion,
  console: benchConsole,
  idle: benchIdle,
  import: benchImport,
  lists: benchLists,
  nodes: benchNodes,
  quality: benchQuality,
  recording: benchRecording,
  rules: benchRules,
  soak: benchSoak,
  srtp: benchSrtp,
  'stalled-receivers': benchStalledReceivers,
  streams: benchStreams,
  voicemail: benchVoicemail,
};

const [name = '', ...args] = process.argv.slice(2);
const bench = benches[name];
if (bench === undefined) {
  console.error(`usage: npm run bench -- ${Object.keys(benches).join('|')}`);
  process.exit(2);
}
await bench(args);
// A bench sets the exit code itself if its calls went wrong.
process.exit();
