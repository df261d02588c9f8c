// Says what became of a call's recording: by its row once the call's part is over, and before that
// by the call's events.

import type { RecordingFailure } from '../calls/recording/recording.ts';
import type { RecordingSummary } from '../calls/recording/recording-contract.ts';
import type { RecordingRow } from '../store/recordings/recording-rows.ts';

export type CallRecording = RecordingSummary & {
  readonly deletedAt?: string;
  /** The id of an app, "retention" or "person". */
  readonly deletedBy?: string;
};

type Entry = { readonly type: string; readonly data: unknown };

type KnownRow = Pick<
  RecordingRow,
  | 'state'
  | 'durationMs'
  | 'pausedMs'
  | 'keyName'
  | 'fault'
  | 'isIncomplete'
  | 'deletedAt'
  | 'deletedBy'
>;

/** @returns undefined if the call has not been recorded */
export function callRecording(
  row: KnownRow | undefined,
  timeline: readonly Entry[],
): CallRecording | undefined {
  return row === undefined ? byEvents(timeline) : byRow(row);
}

function byRow(row: KnownRow): CallRecording {
  const { state, durationMs, pausedMs, keyName, fault, isIncomplete, deletedAt, deletedBy } = row;
  return {
    state: state === 'finishing' ? 'storing' : state,
    ...(durationMs === null ? {} : { durationMs }),
    ...(pausedMs === null ? {} : { pausedMs }),
    ...(keyName === null ? {} : { key: keyName }),
    // The keeper writes no other reasons.
    ...(state === 'failed' ? { reason: (fault ?? 'lost') as RecordingFailure } : {}),
    ...(isIncomplete ? { incomplete: true as const } : {}),
    ...(deletedAt === null ? {} : { deletedAt: deletedAt.toISOString() }),
    ...(deletedBy === null ? {} : { deletedBy }),
  };
}

type Data = Partial<Omit<RecordingSummary, 'state'>> & { readonly recording?: RecordingSummary };

function byEvents(timeline: readonly Entry[]): CallRecording | undefined {
  const last = timeline.findLast(
    ({ type }) => type === 'completed' || type === 'failed' || type.startsWith('recording-'),
  );
  if (last === undefined) return undefined;
  // The gateway wrote it, as the contract says.
  const { recording, durationMs, pausedMs, reason } = last.data as Data;
  const lengths = {
    ...(durationMs === undefined ? {} : { durationMs }),
    ...(pausedMs === undefined ? {} : { pausedMs }),
  };
  switch (last.type) {
    case 'recording-started':
    case 'recording-resumed':
      return { state: 'recording' };
    case 'recording-paused':
      return { state: 'paused' };
    case 'recording-stopped':
      return { state: 'storing', ...lengths };
    case 'recording-failed':
      return { state: 'failed', ...lengths, ...(reason === undefined ? {} : { reason }) };
    case 'recording-stored':
      return { state: 'stored', ...lengths };
    default:
      return recording;
  }
}
