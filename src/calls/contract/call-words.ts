// The words in which a call's state and end are told.

/** Public state of a call, as `GET …/calls/{callId}` says it. */
export const callStates = ['queued', 'dialing', 'ringing', 'answered', 'ended'] as const;
export type CallState = (typeof callStates)[number];

/** Status column of the interactions view. */
export const interactionStatuses = [
  'queued',
  'dialing',
  'ringing',
  'answered',
  'completed',
  'failed',
  'machineDetected',
] as const;
export type InteractionStatus = (typeof interactionStatuses)[number];

/** Our finer word beside the documented `reasonCode`s. Every call ends with exactly one. */
export const callOutcomes = [
  'completed',
  'transferred',
  'machine',
  'voicemail-left',
  'busy',
  'declined',
  'no-answer',
  'unavailable',
  'invalid-number',
  'rejected',
  'carrier-failure',
  'gateway-failure',
  'bot-failure',
  'cancelled',
  'expired',
  'unknown',
] as const;
export type CallOutcome = (typeof callOutcomes)[number];

/** Who had a sound played. */
export const playbackSources = ['command', 'voicemail', 'screening'] as const;
export type PlaybackSource = (typeof playbackSources)[number];

/** done: to its last sample. stopped: before, as it was asked for or as the call ended. failed: it could not be played. */
export const playbackEndReasons = ['done', 'stopped', 'failed'] as const;
export type PlaybackEndReason = (typeof playbackEndReasons)[number];

/** Who is at fault that a call came to nothing. */
export const callFaults = ['caller', 'callee', 'carrier', 'gateway'] as const;
export type CallFault = (typeof callFaults)[number];

export const reasonCodes = [
  'OK',
  'Busy here',
  'Service Unavailable',
  'Temporarily Unavailable',
  'Caller-disconnected',
  'Bot-disconnected',
  'Gateway-disconnected',
] as const;
export type ReasonCode = (typeof reasonCodes)[number];
