// The codes with which a bot's stream explains its events. Besides these, a failure may be an error
// code of Node.js (`ECONNREFUSED`), an HTTP status (`status-404`) or a WebSocket close code
// (`closed-1012`).

/** Why a stream ended although it didn't fail. */
export const streamStops = [
  'call-ended',
  'bot-closed',
  'command',
  'replaced',
  'transferred',
  'voicemail',
  'announcement',
  'media-failed',
] as const;
export type StreamStop = (typeof streamStops)[number];

/** Why a stream couldn't be opened, or broke. */
export const streamFaults = [
  'timeout',
  'silent',
  'backlog',
  'address-not-allowed',
  'settings-unreadable',
  'failed',
] as const;
export type StreamFault = (typeof streamFaults)[number];
