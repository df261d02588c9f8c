// Messages between the main thread and the recording thread. Each request gets one answer.

import type { MessagePort } from 'node:worker_threads';
import type { RecordingFault } from '../../calls/recording/recording.ts';
import type { FinishFault, Leftover, SpooledRecording } from '../recording-thread.ts';

export type RecordingThreadData = {
  /** Absolute path. */
  readonly spool: string;
  readonly ownerId: string;
};

export type ThreadRequest =
  | { readonly kind: 'leftovers' }
  | { readonly kind: 'finish'; readonly folder: string; readonly contentKey?: Uint8Array }
  | { readonly kind: 'remove'; readonly folder: string };

export type ThreadAnswers = {
  readonly leftovers: readonly Leftover[];
  readonly finish: SpooledRecording | FinishFault;
  readonly remove: undefined;
};

export type ToThread =
  | { readonly kind: 'port'; readonly port: MessagePort }
  | { readonly kind: 'request'; readonly id: number; readonly request: ThreadRequest }
  | { readonly kind: 'stop' };

export type FromThread =
  | { readonly kind: 'finished'; readonly spooled: SpooledRecording }
  | {
      readonly kind: 'fault';
      readonly callId: string;
      readonly fault: RecordingFault;
      readonly detail: string;
    }
  | { readonly kind: 'answer'; readonly id: number; readonly answer: unknown }
  | { readonly kind: 'error'; readonly id: number; readonly message: string };
