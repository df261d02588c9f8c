// The values of the API that the page offers in lists.

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

export const suppressionReasons = ['opt-out', 'do-not-call', 'invalid', 'complaint', 'other'];
