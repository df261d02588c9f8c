// The sandbox carrier's numbers, and how the callee behaves at each of them. The README, the demo
// and the tests use this table too. All of the numbers are in the range that North America reserves
// for fiction (+1 NPA 555 0100 to 0199). Calling hours look at the area code: 202 lies in one time
// zone, 907 in two. The second to last digit stands for the kind of callee: 0
// for people, 1 for machines, 2 for no answer or silence, and 3 for calls that are rejected.

import type { SoundName } from './sounds.ts';
import type { TalkManner } from './talker.ts';

export type Refusal = {
  readonly sipStatus: number;
  /** Default: the phrase of RFC 3261. */
  readonly phrase?: string;
  /** Reason header (RFC 3326). */
  readonly reason?: string;
};

export type SandboxBehaviour = {
  /**
   * The callee rings for this long before `next` happens. If it's 0 and the call is rejected, it's
   * rejected immediately, without ringing.
   */
  readonly ringMs: number;
  /** If set, the callee sends 183 with this sound as early media, instead of 180. */
  readonly earlyMedia?: SoundName;
  /** Accepts a REFER, and reports that the call it asked for was answered. */
  readonly takesRefer?: true;
  readonly next:
    | ({ readonly do: 'refuse' } & Refusal)
    | { readonly do: 'ring-on' }
    | {
        readonly do: 'answer';
        /** Played once and followed by silence. */
        readonly sound: SoundName;
        /** Time between the answer and the callee's BYE. By default, the callee doesn't hang up. */
        readonly hangUpAfterMs?: number;
        /** Reason header of the callee's BYE (RFC 3326). */
        readonly hangUpReason?: string;
        /** Adds the audio that arrives after the sound to the call's summary. */
        readonly records?: true;
      }
    /** Talks with the caller (`talker.ts`). */
    | ({ readonly do: 'talk'; readonly hangUpAfterSilenceMs: number } & TalkManner)
    /** Asks who is calling (`screener.ts`). */
    | { readonly do: 'screen'; readonly hangUpUnansweredAfterMs: number; readonly rejects?: true };
};

export type SandboxNumber = {
  /** E.164, with the `+`. */
  readonly number: string;
  /** A name that you can dial instead of the number, as the user part of a SIP URI. */
  readonly name: string;
  readonly description: string;
  readonly behaviour: SandboxBehaviour;
};

export const sandboxNumbers = [
  {
    number: '+12025550100',
    name: 'person',
    description: 'rings 1 s, answers "Hello?" and hangs up 8 s after answering',
    behaviour: { ringMs: 1_000, next: { do: 'answer', sound: 'hello', hangUpAfterMs: 8_000 } },
  },
  {
    number: '+12025550101',
    name: 'person-hangs-up',
    description:
      'rings 1 s, answers with her name (a real voice) and hangs up 2.5 s after answering, with Q.850 cause 16',
    behaviour: {
      ringMs: 1_000,
      next: {
        do: 'answer',
        sound: 'name',
        hangUpAfterMs: 2_500,
        hangUpReason: 'Q.850;cause=16;text="Normal call clearing"',
      },
    },
  },
  {
    number: '+12025550102',
    name: 'person-stays',
    description: 'rings 1 s, answers "Hello?" and waits in silence until you hang up',
    behaviour: { ringMs: 1_000, next: { do: 'answer', sound: 'hello' } },
  },
  {
    number: '+12025550103',
    name: 'person-after-ringback',
    description:
      'plays ringback as early media (183 with SDP) for 5 s, then answers "Hello?" and hangs up 8 s after answering',
    behaviour: {
      ringMs: 5_000,
      earlyMedia: 'ringback',
      next: { do: 'answer', sound: 'helloSecond', hangUpAfterMs: 8_000 },
    },
  },
  {
    number: '+12025550104',
    name: 'talker',
    description:
      'rings 1 s, answers "Hello?", replies to what it hears, interrupts you once if you talk for 2 s; hangs up after 15 s of silence',
    behaviour: {
      ringMs: 1_000,
      next: { do: 'talk', hangUpAfterSilenceMs: 15_000, interrupts: true },
    },
  },
  {
    number: '+12025550105',
    name: 'agent',
    description:
      'for `bridge`: rings 1 s, answers "Hello?", replies once to what it hears; hangs up after 3 s of silence',
    behaviour: { ringMs: 1_000, next: { do: 'talk', hangUpAfterSilenceMs: 3_000, answers: 1 } },
  },
  {
    number: '+12025550106',
    name: 'person-referred',
    description:
      'rings 1 s, answers "Hello?" and accepts a REFER (`bridge` with `mode: refer`), which all other numbers refuse',
    behaviour: { ringMs: 1_000, takesRefer: true, next: { do: 'answer', sound: 'hello' } },
  },
  {
    number: '+12025550107',
    name: 'person-presses-1',
    description:
      'rings 1 s, answers "Hello?", presses 1 when the first prompt ends, then replies once to what it hears; hangs up after 15 s of silence',
    behaviour: {
      ringMs: 1_000,
      next: { do: 'talk', hangUpAfterSilenceMs: 15_000, presses: '1', answers: 1 },
    },
  },
  {
    number: '+12025550108',
    name: 'person-opts-out',
    description:
      'rings 1 s, answers "Hello?", presses 9 when the first prompt ends, then waits; hangs up after 15 s of silence',
    behaviour: {
      ringMs: 1_000,
      next: { do: 'talk', hangUpAfterSilenceMs: 15_000, presses: '9', answers: 0 },
    },
  },
  {
    number: '+12025550109',
    name: 'agent-late',
    description:
      'for `bridge`: like `agent`, but rings 6 s, so that the person has waited for more than 2 s',
    behaviour: {
      ringMs: 6_000,
      next: { do: 'talk', hangUpAfterSilenceMs: 3_000, answers: 1 },
    },
  },
  {
    number: '+19075550100',
    name: 'person-in-alaska',
    description: 'like `person`, with a number that may lie in two time zones',
    behaviour: { ringMs: 1_000, next: { do: 'answer', sound: 'hello', hangUpAfterMs: 8_000 } },
  },
  {
    number: '+12025550110',
    name: 'voicemail',
    description: 'rings 1 s, plays a 5 s greeting and a beep, records for 4 s and hangs up',
    behaviour: {
      ringMs: 1_000,
      next: { do: 'answer', sound: 'voicemail', hangUpAfterMs: 10_500, records: true },
    },
  },
  {
    number: '+12025550111',
    name: 'voicemail-no-beep',
    description: 'rings 1 s, plays a 5 s announcement without a beep and hangs up 5 s later',
    behaviour: {
      ringMs: 1_000,
      next: { do: 'answer', sound: 'announcement', hangUpAfterMs: 10_000 },
    },
  },
  {
    number: '+12025550112',
    name: 'fax',
    description:
      'rings 1 s, answers as a fax machine with 3 s of 2100 Hz and hangs up 10 s after answering',
    behaviour: { ringMs: 1_000, next: { do: 'answer', sound: 'fax', hangUpAfterMs: 10_000 } },
  },
  {
    number: '+12025550113',
    name: 'voicemail-two-beeps',
    description:
      'rings 1 s, plays a 5 s greeting, a beep, and a second beep 1.5 s later; records for 6.6 s and hangs up',
    behaviour: {
      ringMs: 1_000,
      next: { do: 'answer', sound: 'voicemailTwice', hangUpAfterMs: 15_000, records: true },
    },
  },
  {
    number: '+12025550114',
    name: 'screener',
    description:
      'rings 1 s, asks who is calling and why (7 s); after your answer a person says "Hello?"; hangs up if you say nothing for 8 s',
    behaviour: { ringMs: 1_000, next: { do: 'screen', hangUpUnansweredAfterMs: 8_000 } },
  },
  {
    number: '+12025550115',
    name: 'screener-rejects',
    description: 'like `screener`, but the person declines: also hangs up 1.5 s after your answer',
    behaviour: {
      ringMs: 1_000,
      next: { do: 'screen', hangUpUnansweredAfterMs: 8_000, rejects: true },
    },
  },
  {
    number: '+12025550120',
    name: 'silence',
    description: 'rings 1 s, answers, says nothing and hangs up after 30 s',
    behaviour: { ringMs: 1_000, next: { do: 'answer', sound: 'silence', hangUpAfterMs: 30_000 } },
  },
  {
    number: '+12025550121',
    name: 'no-answer',
    description: 'rings and never answers',
    behaviour: { ringMs: 1_000, next: { do: 'ring-on' } },
  },
  {
    number: '+12025550130',
    name: 'busy',
    description: '486 Busy Here',
    behaviour: { ringMs: 0, next: { do: 'refuse', sipStatus: 486 } },
  },
  {
    number: '+12025550131',
    name: 'declined',
    description: 'rings 1 s, then 603 Decline',
    behaviour: { ringMs: 1_000, next: { do: 'refuse', sipStatus: 603 } },
  },
  {
    number: '+12025550132',
    name: 'unavailable',
    description: '480 Temporarily Unavailable',
    behaviour: { ringMs: 0, next: { do: 'refuse', sipStatus: 480 } },
  },
  {
    number: '+12025550133',
    name: 'carrier-down',
    description: '503 Service Unavailable',
    behaviour: { ringMs: 0, next: { do: 'refuse', sipStatus: 503 } },
  },
  {
    number: '+12025550134',
    name: 'invalid',
    description: '404 Not Found, like every number that is not in this table; Q.850 cause 1',
    behaviour: {
      ringMs: 0,
      next: {
        do: 'refuse',
        sipStatus: 404,
        reason: 'Q.850;cause=1;text="Unallocated number"',
      },
    },
  },
  {
    number: '+12025550135',
    name: 'blocked',
    description: '603 Network Blocked, as a US carrier whose analytics block the caller ID',
    behaviour: {
      ringMs: 0,
      next: {
        do: 'refuse',
        sipStatus: 603,
        phrase: 'Network Blocked',
        reason:
          'SIP;cause=603;text="v=analytics1;url=https://redress.example.com/blocked;tel=+12025550199;id=sandbox";location=RLN',
      },
    },
  },
] as const satisfies readonly SandboxNumber[];

export type SandboxName = (typeof sandboxNumbers)[number]['name'];

/**
 * Finds a number by the user part of the request URI, which may be the number with or without `+`,
 * or the name. The callees have no extensions, so `;ext=7` makes no difference. A local number is
 * completed with its context, e.g. `5550100;phone-context=+1202`.
 */
export function findSandboxNumber(user: string): SandboxNumber | undefined {
  const [number = '', ...parameters] = user.split(';');
  const context = parameters.find((parameter) => parameter.startsWith('phone-context=+'));
  const prefix = context?.slice('phone-context='.length) ?? '';
  const wanted = `${prefix}${number}`.replace(/^\+/, '');
  return sandboxNumbers.find((row) => row.number === `+${wanted}` || row.name === wanted);
}
