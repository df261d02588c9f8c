// The values by which the list of calls can be filtered, as in the API.

export const filters = {
  status: ['queued', 'dialing', 'ringing', 'answered', 'completed', 'failed', 'machineDetected'],
  outcome: [
    ...['completed', 'transferred', 'machine', 'voicemail-left', 'busy', 'declined'],
    ...['blocked', 'no-answer', 'unavailable', 'invalid-number', 'rejected', 'carrier-failure'],
    ...['gateway-failure', 'bot-failure', 'cancelled', 'expired', 'not-permitted'],
    'unknown',
  ],
  verdict: [
    ...['amd_human_detected', 'amd_machine_detected', 'amd_tone_detected'],
    ...['amd_no_speech_detected', 'amd_decision_timeout', 'amd_error'],
  ],
};
