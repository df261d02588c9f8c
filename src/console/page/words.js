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

/** Outcomes and statuses in one list, as the badges of calls name them. */
export const results = {
  'In progress': {
    queued: 'Queued or held',
    dialing: 'Dialing',
    ringing: 'Ringing',
    answered: 'Answered, not over',
  },
  Answered: {
    completed: 'Completed',
    transferred: 'Transferred',
    'voicemail-left': 'Machine · message left',
    machine: 'Machine · no message left',
    machineDetected: 'Machine · hung up',
  },
  'Nobody picked up': {
    busy: 'Busy',
    declined: 'Declined',
    'no-answer': 'No answer',
    unavailable: 'Unavailable',
  },
  Failed: {
    failed: 'Any that was not answered',
    'invalid-number': 'No such number',
    blocked: 'Blocked by carrier',
    rejected: 'Rejected',
    'carrier-failure': 'Carrier failed',
    'gateway-failure': 'Gateway failed',
    'bot-failure': 'Bot failed',
    expired: 'Queued too long',
    unknown: 'Outcome unknown',
  },
  'Not called': { 'not-permitted': 'Not permitted', cancelled: 'Cancelled' },
};

const resultNames = Object.assign({}, ...Object.values(results));

/** The name of an outcome or a status. */
export const resultName = (value) =>
  Object.hasOwn(resultNames, value) ? resultNames[value] : value;

export const suppressionReasonWords = {
  'opt-out': 'Opt-out',
  'do-not-call': 'Do not call',
  invalid: 'Invalid',
  complaint: 'Complaint',
  other: 'Other',
};
