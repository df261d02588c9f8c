// The life of one call as a statechart, without I/O. `call-setup.ts` only stubs the line;
// `call-actors.ts` provides the real line and the journal.
//
// preparing   Entered when this process starts the call. The line opens a media port and waits for
//             its turn on the trunk. Left when the first INVITE is sent, when the leg or the media
//             fails, or by a command. Bound: the request's queue time-out, which counts from the
//             acceptance of the call. If the time-out expires, the call isn't dialled.
// calling     Entered with the first INVITE. The call is `dialing` until the first 18x response,
//             then `ringing`. When a gateway fails, the line sends an INVITE to the next one. Left
//             when the far end answers or refuses, when the media fails, or by a command. Bound:
//             the ring time-out. One timer covers all gateways. It starts with the first INVITE,
//             because that's when the dialer starts waiting.
// answering   Entered with a usable 200 OK. Stores what a BYE needs before the line ACKs the 200
//             OK, so that a crash cannot leave a person in a call that no process can end. If
//             either side hangs up in the meantime, the hang-up takes effect in `answered`. Left
//             when the answer has been stored, or when the database rejects it or fails to store
//             it. Bound: `storeAnswerTimeoutMs`.
// refusing    Entered if the answer couldn't be stored, or not in time. Hangs up and immediately
//             continues with `recording`. Whether the call counts as answered depends on what the
//             database contains.
// answered    Entered when the answer has been stored. ACKs the 200 OK. A person or a machine is on
//             the line, and detection is running if the request asked for it. While `ongoing` is
//             set, a transfer is in progress or has connected the person. Left by a BYE from either
//             side, by lost media, by a bot that closes its stream or cannot be reached, by a
//             person who opts out, by a recording that is required and fails, or by a plan that
//             ends the call. In `disconnect` mode, also left
//             when detection finds a machine or fails. With a transfer, also left when the second
//             leg ends, when a referral succeeds, or when a failed transfer leaves neither a bot
//             nor a plan for the person. Bound: the maximum duration, counted from the answer.
// closing     Entered when an answered call has ended. We're still waiting for detection to report
//             `amd_stopped`, and for the bot's stream, the sounds, the keys and the recording to
//             report their ends. Left when the media has reported all of these. Bound:
//             `closingTimeoutMs`, after which the machine itself emits the missing ends of
//             detection, streams, sounds and the recording.
// recording   Entered when the call's end is decided and the media has nothing more to report.
//             Stores the end, after any earlier events that haven't been stored yet. Left when the
//             end has been stored. Bound: `storeEndTimeoutMs`, after which the outbox keeps trying
//             without the machine.
// ended       Final.

import type { ActorRefFrom } from 'xstate';
import { nothingReached } from '../abandonment/abandonment.ts';
import {
  forgetAgent,
  giveUpOnPerson,
  judgeReach,
  noteAgent,
  noteAgentReached,
  noteAnswerer,
  noteBot,
  noteMessage,
} from '../abandonment/abandonment-effects.ts';
import {
  endsAnnouncement,
  hangUpAfterAnnouncement,
} from '../announcements/announcement-effects.ts';
import {
  disconnectReason,
  emitAmd,
  emitAmdStopped,
  hangUpOnMachine,
} from '../detection/detection-effects.ts';
import { countKeys, emitDtmf, emitKeysSent, noteAcceptsKeys } from '../keys/key-effects.ts';
import { optOutByCommand, optOutByKey } from '../opt-out/opt-out-effects.ts';
import { hangUpByPlan, notePlan } from '../plans/plan-effects.ts';
import { emitPlayback, emitPlaybackFailed } from '../playback/playback-effects.ts';
import {
  beginRecordingAtAnswer,
  beginRecordingForPerson,
  emitRecording,
  emitRecordingLost,
  failsRequiredRecording,
  hangUpUnrecorded,
  recordAfterNotice,
  recordByCommand,
  stopRecording,
} from '../recording/recording-effects.ts';
import { evidenceIn } from '../rules/evidence.ts';
import {
  applyStreamCommand,
  emitStream,
  emitStreamStopped,
  endStream,
  hangUpByBot,
  hangUpOnBotFailure,
  streamEndReason,
  streamingOfRequest,
} from '../stream/stream-effects.ts';
import {
  closeTransfer,
  emitReferred,
  emitTransferAnswered,
  emitTransferEnded,
  emitTransferFailed,
  emitTransferRinging,
  hangUpOnPersonAlone,
  hangUpOnTransfer,
  isPersonAlone,
  leavesPersonAlone,
  noteTransferConnected,
  startCommandedTransfer,
  startPlannedTransfer,
  withdrawPlannedTransfer,
} from '../transfer/transfer-effects.ts';
import {
  abandonAnswer,
  acknowledge,
  awaitQuality,
  buildEnd,
  cancelByCommand,
  cancelByQueueTimeout,
  cancelByRingTimeout,
  cancelByRule,
  emitDialing,
  emitRinging,
  endByFailure,
  endByLeg,
  endIfAnswered,
  hangUpByCommand,
  hangUpOnFailure,
  hangUpOnMaxDuration,
  noteAnswer,
  noteFailedAttempt,
  notePlacing,
  noteQuality,
  noteStated,
  noteStoredEnd,
  stopAwaitingQuality,
} from './call-effects.ts';
import { progressOfAccepted } from './call-events.ts';
import {
  type CallMachineContext,
  callSetup,
  type PassedEventType,
  sendToMedia,
} from './call-setup.ts';
import type { CallStep } from './call-step.ts';

/**
 * Requires a row for every media event. If a row is missing, `answered` and `closing` don't
 * compile.
 */
type TakesMedia = { readonly on: Readonly<Record<PassedEventType, unknown>> };

const answered = callSetup.createStateConfig({
  entry: [acknowledge, beginRecordingAtAnswer, startPlannedTransfer],
  always: [
    { guard: 'hasEnded', target: 'closing' },
    {
      guard: ({ context }) => isPersonAlone(context),
      target: 'closing',
      actions: hangUpOnPersonAlone,
    },
  ],
  after: { maxDuration: { target: 'closing', actions: hangUpOnMaxDuration } },
  on: {
    'media.amd': [
      {
        guard: ({ context, event }) => disconnectReason(context, event.amd) === 'machine',
        target: 'closing',
        actions: [emitAmd, hangUpOnMachine, noteAnswerer],
      },
      {
        guard: ({ context, event }) => disconnectReason(context, event.amd) === 'failure',
        target: 'closing',
        actions: [emitAmd, hangUpOnFailure, noteAnswerer],
      },
      {
        actions: [
          emitAmd,
          beginRecordingForPerson,
          startPlannedTransfer,
          withdrawPlannedTransfer,
          noteAnswerer,
        ],
      },
    ],
    'reach.due': { actions: judgeReach },
    'reach.giveUp': { actions: giveUpOnPerson },
    'media.botSpoke': { actions: noteBot },
    // The media only reports this at the end.
    'media.quality': {},
    'media.recording': [
      {
        guard: ({ context, event }) => failsRequiredRecording(context, event),
        target: 'closing',
        actions: [emitRecording, hangUpUnrecorded],
      },
      { actions: emitRecording },
    ],
    'leg.dtmf': { actions: [emitDtmf, optOutByKey] },
    'media.dtmf': { actions: [emitDtmf, optOutByKey] },
    'media.stream': [
      // A bot may leave after transferring the call. The call continues.
      { guard: 'isTransferring', actions: emitStream },
      {
        guard: ({ context, event }) => streamEndReason(context, event) === 'bot-left',
        target: 'closing',
        actions: [emitStream, hangUpByBot],
      },
      {
        guard: ({ context, event }) => streamEndReason(context, event) === 'bot-lost',
        target: 'closing',
        actions: [emitStream, hangUpOnBotFailure],
      },
      { actions: emitStream },
    ],
    'media.playback': [
      {
        guard: ({ event }) => endsAnnouncement(event),
        target: 'closing',
        actions: [emitPlayback, hangUpAfterAnnouncement],
      },
      {
        guard: ({ context, event }) => failsRequiredRecording(context, event),
        target: 'closing',
        actions: [emitPlayback, recordAfterNotice, hangUpUnrecorded],
      },
      { actions: [emitPlayback, noteMessage, recordAfterNotice] },
    ],
    'media.plan': [
      {
        guard: ({ event }) => event.report.kind === 'over',
        target: 'closing',
        actions: hangUpByPlan,
      },
      { actions: notePlan },
    ],
    'command.media': {
      actions: [
        countKeys,
        {
          type: 'sendToLine',
          params: ({ event }) => ({ type: 'media', command: event.command }),
        },
      ],
    },
    'command.stream': { actions: applyStreamCommand },
    'media.keysSent': { actions: emitKeysSent },
    'transfer.ringing': { actions: emitTransferRinging },
    'transfer.reached': { actions: noteAgentReached },
    'transfer.answered': { actions: [emitTransferAnswered, noteAgent] },
    'transfer.connected': { actions: noteTransferConnected },
    'transfer.failed': [
      {
        guard: ({ context, event }) => leavesPersonAlone(context, event.failure),
        target: 'closing',
        actions: [emitTransferFailed, forgetAgent, hangUpOnTransfer],
      },
      { actions: [emitTransferFailed, forgetAgent] },
    ],
    'transfer.ended': {
      guard: 'isTransferring',
      target: 'closing',
      actions: [emitTransferEnded, hangUpOnTransfer],
    },
    'transfer.referred': {
      guard: 'isTransferring',
      target: 'closing',
      actions: [emitReferred, hangUpOnTransfer],
    },
    'command.transfer': { actions: startCommandedTransfer },
    'command.optOut': { actions: optOutByCommand },
    'command.record': { actions: recordByCommand },
    'leg.ended': { target: 'closing', actions: endByLeg },
    'media.failed': { target: 'closing', actions: hangUpOnFailure },
    'media.inactive': { target: 'closing', actions: hangUpOnFailure },
    'command.end': { target: 'closing', actions: hangUpByCommand },
  },
}) satisfies TakesMedia;

const closing = callSetup.createStateConfig({
  entry: [
    closeTransfer,
    sendToMedia({ kind: 'stopDetection', reason: 'call-ended' }),
    endStream('call-ended'),
    sendToMedia({ kind: 'stopPlayback', isEnd: true }),
    stopRecording,
    awaitQuality,
  ],
  always: { guard: 'mediaIsOver', target: 'recording' },
  after: {
    closingTimeout: {
      target: 'recording',
      actions: [emitAmdStopped, emitStreamStopped, emitPlaybackFailed, emitRecordingLost],
    },
  },
  on: {
    'media.amd': { actions: [emitAmd, noteAnswerer] },
    'media.stream': { actions: emitStream },
    'media.playback': { actions: emitPlayback },
    'media.keysSent': { actions: emitKeysSent },
    'media.recording': { actions: emitRecording },
    'media.quality': { actions: noteQuality },
    'media.failed': { actions: stopAwaitingQuality },
    // The call has ended, so there's nothing to do for these.
    'media.botSpoke': {},
    'media.dtmf': {},
    'media.inactive': {},
    'media.plan': {},
  },
}) satisfies TakesMedia;

export const callMachine = callSetup.createMachine({
  id: 'call',
  context: ({ input }) => ({
    progress: progressOfAccepted(input.call),
    limits: input.limits,
    clock: input.clock,
    journal: input.journal,
    detection: 'off',
    plans: {
      hasPlans:
        input.call.request.voicemail !== undefined || input.call.request.screening !== undefined,
      round: 1,
    },
    streaming: streamingOfRequest(input.call.request.stream),
    keys: { digits: 0, acceptsKeys: false, pressing: 0, hiddenPresses: [] },
    transfers: 0,
    reach: nothingReached,
    ending: {},
  }),
  output: ({ context: { end, ending, progress } }) => ({
    end: ending.isRefused === true ? undefined : end,
    quality: progress.quality,
  }),
  invoke: { id: 'line', src: 'line', input: ({ context }) => context.progress.call },
  on: {
    'line.acceptsKeys': { actions: noteAcceptsKeys },
    'line.placing': { actions: notePlacing },
    'leg.stated': { actions: noteStated },
  },
  initial: 'preparing',
  states: {
    preparing: {
      after: { queueTimeout: { target: 'recording', actions: cancelByQueueTimeout } },
      on: {
        'leg.sent': { target: 'calling', actions: emitDialing },
        'leg.attemptFailed': { actions: noteFailedAttempt },
        'leg.failed': { target: 'recording', actions: endByFailure },
        'media.failed': { target: 'recording', actions: hangUpOnFailure },
        'command.end': { target: 'recording', actions: cancelByCommand },
        'command.refuse': { target: 'recording', actions: cancelByRule },
      },
    },
    calling: {
      initial: 'dialing',
      states: {
        dialing: { on: { 'leg.provisional': { target: 'ringing', actions: emitRinging } } },
        ringing: {},
      },
      after: { ringTimeout: { target: 'recording', actions: cancelByRingTimeout } },
      on: {
        'leg.sent': { actions: emitDialing },
        'leg.resent': {
          actions: { type: 'append', params: ({ event }) => ({ events: [], leg: event.leg }) },
        },
        'leg.attemptFailed': { actions: noteFailedAttempt },
        'leg.answered': { target: 'answering', actions: noteAnswer },
        'leg.failed': { target: 'recording', actions: endByFailure },
        'media.failed': { target: 'recording', actions: hangUpOnFailure },
        'command.end': { target: 'recording', actions: cancelByCommand },
        'command.refuse': { target: 'recording', actions: cancelByRule },
      },
    },
    answering: {
      entry: { type: 'storeAnswer', params: ({ context }) => answerStep(context) },
      after: { storeAnswerTimeout: { target: 'refusing' } },
      on: {
        'journal.answered': [
          { guard: ({ event }) => event.result === 'stored', target: 'answered' },
          { target: 'refusing' },
        ],
        // If the call ends while the answer is being stored, we record the end, and `answered`
        // immediately moves on to `closing`. Lost media doesn't need a row here, because the line
        // holds back all media events until the answer is acknowledged.
        'leg.ended': { actions: endByLeg },
        'command.end': { actions: hangUpByCommand },
      },
    },
    refusing: { entry: abandonAnswer, always: { target: 'recording' } },
    answered,
    closing,
    recording: {
      entry: [
        judgeReach,
        buildEnd,
        { type: 'storeEnd', params: ({ context }) => endStep(context) },
      ],
      after: { storeEndTimeout: { target: 'ended' } },
      on: { 'journal.ended': { target: 'ended', actions: noteStoredEnd } },
    },
    ended: { type: 'final' },
  },
});

export type CallActor = ActorRefFrom<typeof callMachine>;

function answerStep({ progress, leg, answer }: CallMachineContext): CallStep {
  const { answeredAt } = progress;
  if (answeredAt === undefined || leg === undefined || answer === undefined) {
    throw new Error('an answer is stored only after it was noted');
  }
  return { events: [answer.event], answeredAt, leg };
}

function endStep(context: CallMachineContext): CallStep {
  const { progress, ending, mayHaveSent } = context;
  const { event, legIsOver } = ending;
  if (event === undefined) throw new Error('an end is stored only after it was built');
  const ifAnswered = endIfAnswered(context);
  return {
    events: [],
    ending: {
      event,
      ...(ifAnswered === undefined ? {} : { ifAnswered }),
      ...evidenceIn(progress),
      ...(progress.sentAt === undefined && mayHaveSent !== true ? { isUnsent: true } : {}),
    },
    ...(legIsOver === undefined ? {} : { legIsOver }),
  };
}
