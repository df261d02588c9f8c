// A process whose files can't be longer than a limit. It records a call until that fails, and tries
// to finish the recording in the folder that it's given. Prints what happened, as JSON.

import pino from 'pino';
import type { RecordingReport } from '../../../src/calls/recording/recording.ts';
import { RecorderLink } from '../../../src/recording/audio/recorder-link.ts';
import { createRecordingThread } from '../../../src/recording/thread-handle.ts';
import { eventually } from '../../support/eventually.ts';
import { startOf } from './recorded-session.ts';

const [spool = '', leftover = ''] = process.argv.slice(2);
const thread = createRecordingThread({
  ...{ spool, ownerId: 'limited', logger: pino({ level: 'silent' }) },
});
const finished = await thread.finish(leftover);
const faults: string[] = [];
thread.onFault(({ fault }) => faults.push(fault));
const link = new RecorderLink();
link.connect(thread.portForMediaWorker());
const reports: RecordingReport[] = [];
const recorder = link.create(startOf(), 0, (report) => reports.push(report));
link.tick();
await eventually(() => reports.length > 0, 'the recording begins');
await eventually(() => {
  for (let tick = 0; tick < 50; tick += 1) {
    recorder.tick();
    link.tick();
  }
  return recorder.isOver;
}, 'the recording fails');
await eventually(() => faults.length > 0, 'the fault is reported');
await thread.stop();
process.stdout.write(JSON.stringify({ finished, faults, reports }));
process.exit(0);
