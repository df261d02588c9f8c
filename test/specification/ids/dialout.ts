// What the specification says about the dial-out request and its response.

export const dialoutIds = {
  'dialout.start.header.auth': 'header `auth` (JWT)',
  'dialout.start.header.Content-Type': '`Content-Type: application/json`',
  'dialout.start.rule.scope': 'Dial-out: `Dialout` scope',
  'dialout.start.path.botId': '`botId` (string, required; bot identifier or stream identifier)',
  'dialout.start.body.botId': 'bot or stream identifier',
  'dialout.start.body.bot': 'the request example names this property `bot`',
  'dialout.start.body.target':
    'a `tel:` URI with country code, or a `sip:` URI with user, host and port',
  'dialout.start.body.caller': 'user part of the caller ID',
  'dialout.start.body.notifyurl':
    'absolute URL that receives notifications; when omitted, no notifications are sent',
  'dialout.start.body.notifyHeaders':
    'custom headers sent with the notifications to the notify URL',
  'dialout.start.body.timeoutInMs': 'how long to wait for the recipient to answer',
  'dialout.start.body.trunk':
    "carrier for the account; when omitted, the account's default carrier is used",
  'dialout.start.body.metadata': 'key-value context passed to the bot about the call',
  'dialout.start.body.timers': 'AMD timers',
  'dialout.start.body.timers.noSpeechTimeoutMs':
    '5000: wait for speech before `amd_no_speech_detected`',
  'dialout.start.body.timers.decisionTimeoutMs': '15000: wait before `amd_decision_timeout`',
  'dialout.start.body.timers.toneTimeoutMs': '20000: wait to hear a tone',
  'dialout.start.body.timers.greetingCompletionTimeoutMs':
    '2000: silence during greeting before `amd_machine_stopped_speaking`',
  'dialout.start.rule.timer-defaults': 'Default AMD timers: see `timers` table',
  'dialout.start.body.machineDetection': '`disconnect`, `detect`, `disabled`',
  'dialout.start.rule.disconnect': '`disconnect` (detection on, call disconnected on machine)',
  'dialout.start.rule.detect': '`detect` (detection on, call kept)',
  'dialout.start.rule.disabled': '`disabled` (detection off)',
  'dialout.start.body.thresholdWordCount':
    'number of spoken words in a greeting that yields `amd_machine_detected`',
  'dialout.start.body.amdEventsSubscription':
    'when set to an empty array, intermediate AMD events are not sent',
  'dialout.start.body.callControlParameter':
    'overrides speech-to-text settings set at application level',
  'dialout.start.body.callControlParameter.sttProvider':
    'string, required, name of the speech-to-text provider',
  'dialout.start.body.callControlParameter.sttLanguage': 'string, required, language code',
  'dialout.start.body.callControlParameter.interim':
    'boolean, whether interim transcription results are returned',
  'dialout.start.body.callControlParameter.sttLabel':
    'string, optional, label of the configuration',
  'dialout.start.body.callControlParameter.continuousASRTimeoutInMS':
    'number, optional, ms to wait after silence before stopping recognition',
  'dialout.start.body.callControlParameter.sttVendorUtteranceEndMs':
    'number, optional, silence in ms that ends an utterance',
  'dialout.start.body.callControlParameter.sttVendorEndpointing':
    'number, optional, silence in ms used for endpointing',
  'dialout.start.response.sid': '`{sid: <string>, callId: <string>}`',
  'dialout.start.response.callId': '`{sid: <string>, callId: <string>}`',
  'dialout.context.rule.amd': '`context.session.UserSession.amd`: the AMD event names',
  'dialout.context.rule.amdEvents': '`amdInfo.amdEvents`: all AMD events',
  'dialout.context.rule.amdGreeting':
    '`amdInfo.amdGreeting`: message linked to `amd_machine_detected`',
  'dialout.context.rule.amdReason': '`amdInfo.amdReason`: reason for `amd_machine_detected`',
  'dialout.context.rule.amdRingDurationInMs': '`amdInfo.amdRingDurationInMs`',
  'dialout.context.rule.amdConnectDurationInMs': '`amdInfo.amdConnectDurationInMs`',
  'dialout.interaction.rule.machineDetected-machine':
    '`disconnect` and `amd_machine_detected`: marked `machineDetected` in the Status column',
  'dialout.interaction.rule.machineDetected-tone':
    '`disconnect` and `amd_tone_detected`: marked `machineDetected` in the Status column',
} as const;
