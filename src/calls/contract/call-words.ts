// The public words for a call's states, outcomes and reasons.

/** A call's public state, as in `GET …/calls/{callId}`. */
export const callStates = ['queued', 'dialing', 'ringing', 'answered', 'ended'] as const;
export type CallState = (typeof callStates)[number];

/** The status column of the interactions view. */
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

/**
 * A call's outcome, which is more precise than the documented `reasonCode`. Every call ends with
 * exactly one outcome.
 */
export const callOutcomes = [
  'completed',
  'transferred',
  'machine',
  'voicemail-left',
  'busy',
  'declined',
  'blocked',
  'no-answer',
  'unavailable',
  'invalid-number',
  'rejected',
  'carrier-failure',
  'gateway-failure',
  'bot-failure',
  'cancelled',
  'expired',
  'not-permitted',
  'unknown',
] as const;
export type CallOutcome = (typeof callOutcomes)[number];

/** What caused a sound to be played. */
export const playbackSources = [
  'command',
  'voicemail',
  'screening',
  'announcement',
  'recording',
] as const;
export type PlaybackSource = (typeof playbackSources)[number];

/**
 * done: played to the last sample. stopped: a command or the end of the call cut it short. failed:
 * it couldn't be played.
 */
export const playbackEndReasons = ['done', 'stopped', 'failed'] as const;
export type PlaybackEndReason = (typeof playbackEndReasons)[number];

/** The side that caused a call to fail. */
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
