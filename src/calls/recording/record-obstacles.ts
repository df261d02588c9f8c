// Says why the command `record` isn't possible in the call's current state.

import type { CallMachineContext } from '../life/call-setup.ts';
import { defaultRecording, type RecordingBegin } from './recording.ts';
import type { RecordAction } from './recording-contract.ts';
import type { RecordingProgress } from './recording-progress.ts';

type Obstacle = (progress: RecordingProgress, from: RecordingBegin) => string | undefined;

const notRecorded = 'The call is not being recorded.';

function notRunning({ phase }: RecordingProgress): string | undefined {
  if (phase === 'running') return undefined;
  return phase === 'none' ? notRecorded : 'The announcement before the recording is playing.';
}

const obstacles: Readonly<Record<RecordAction, Obstacle>> = {
  start: ({ phase }) => (phase === 'none' ? undefined : 'The call is already being recorded.'),
  // A recording that is still to begin can be called off.
  stop: ({ phase }, from) => (phase === 'none' && from === 'command' ? notRecorded : undefined),
  pause: (progress) =>
    notRunning(progress) ??
    (progress.isHeld === true ? 'The recording is already paused.' : undefined),
  resume: (progress) => {
    const isPaused = progress.isHeld === true || progress.pausedSinceMs !== undefined;
    return notRunning(progress) ?? (isPaused ? undefined : 'The recording is not paused.');
  },
};

/** @returns undefined if the action is possible */
export function recordObstacle(
  { progress, end, announcing }: CallMachineContext,
  action: RecordAction,
): string | undefined {
  const { call, recording } = progress;
  if (end !== undefined || announcing !== undefined) return 'The call is ending.';
  if (recording.phase === 'over' || recording.isStopping === true) {
    return 'The recording of the call is over, and a call is recorded at most once.';
  }
  const { recording: wanted } = call.request;
  if (action === 'start' && wanted === false) return 'The call must not be recorded.';
  const { from } = wanted || defaultRecording;
  return obstacles[action](recording, from);
}
