// The SDP of the far end's early dialogs. If a 200 OK contains no SDP, the last SDP of its own
// dialog applies:
// - The answer in a reliable provisional response is final, so the 200 needn't repeat it (RFC 3262,
//   section 5).
// - Some carriers send the answer only in an unreliable 183, although RFC 3261, section 13.2.1,
//   requires it in the 200. The caller must treat the first description as the answer, so the call
//   can go on, and hanging up on a person who has just picked up would help nobody.
//
// The branches of a fork are dialogs of their own, and never answer for each other.

import type { ReceivedResponse } from '../engine/srf-types.ts';
import { tagOf } from '../sip-headers.ts';

/** Forks rarely have more than a handful of branches. Further ones must put SDP into their 200. */
const maxBranches = 16;

type Answer = { readonly sdp: string; readonly isFinal: boolean };

export class EarlyAnswers {
  /** By the far end's tag. */
  readonly #answers = new Map<string, Answer>();

  /** Notes the SDP of a provisional response. It can't replace a final answer. */
  noteProvisional(response: ReceivedResponse, sdp: string): void {
    const tag = tagOf(response.get('To'));
    if (tag === undefined || this.#answers.get(tag)?.isFinal === true) return;
    const isRequired = /(^|,)\s*100rel\s*(,|$)/i.test(response.get('Require') ?? '');
    this.#note(tag, { sdp, isFinal: isRequired && response.has('RSeq') });
  }

  /** Notes an offer in an UPDATE that we accepted. It replaces what was agreed before. */
  noteUpdate(tag: string, sdp: string): void {
    this.#note(tag, { sdp, isFinal: true });
  }

  /** Returns the SDP that applies in the dialog of a 200 OK without SDP. */
  of(response: ReceivedResponse): string | undefined {
    const tag = tagOf(response.get('To'));
    return tag === undefined ? undefined : this.#answers.get(tag)?.sdp;
  }

  #note(tag: string, answer: Answer): void {
    if (this.#answers.size < maxBranches || this.#answers.has(tag)) this.#answers.set(tag, answer);
  }
}
