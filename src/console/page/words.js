// The values of the filters of calls. They are the same as in the list API.

export const filters = {
  status: ['queued', 'dialing', 'ringing', 'answered', 'completed', 'failed', 'machineDetected'],
  outcome: [
    ...['completed', 'transferred', 'machine', 'voicemail-left', 'busy', 'declined', 'no-answer'],
    ...['unavailable', 'invalid-number', 'rejected', 'carrier-failure', 'gateway-failure'],
    ...['bot-failure', 'cancelled', 'expired', 'unknown'],
  ],
};
