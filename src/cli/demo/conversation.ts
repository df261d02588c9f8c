// The demo's results. The bot measures the conversation at its WebSocket, while the talker measures
// it at its phone. The mailbox records the message. Both phones measure the transfer.

import type { SandboxCallSummary } from '../../embedded/sandbox/sandbox-call.ts';
import type { TalkSummary } from '../../embedded/sandbox/talker.ts';
import type { BotCallSummary, BotEvent } from '../bot/bot-events.ts';
import { type LeftMessage, leftMessageIn } from './message.ts';
import type { Transfer } from './transfer.ts';

export type Conversation = {
  readonly bot?: BotCallSummary;
  readonly talker?: TalkSummary;
  /** The message as the mailbox recorded it. */
  readonly message?: LeftMessage;
  readonly transfer?: Transfer;
};

/** Collects the results as the bot, the sandbox and the gateway report them. */
export class ConversationRecord {
  #conversation: Conversation = {};

  get conversation(): Conversation {
    return this.#conversation;
  }

  get isComplete(): boolean {
    const { bot, talker, message, transfer } = this.#conversation;
    const isTransferred = transfer?.person !== undefined && transfer.agent !== undefined;
    return bot !== undefined && talker !== undefined && message !== undefined && isTransferred;
  }

  hearBot(event: BotEvent): void {
    if (event.type === 'ended') this.#conversation = { ...this.#conversation, bot: event };
  }

  hearSandbox(summary: SandboxCallSummary): void {
    const { talk, name } = summary;
    if (talk !== undefined) this.#hearTalk(talk, name);
    const message = leftMessageIn(summary);
    if (message !== undefined) this.#conversation = { ...this.#conversation, message };
  }

  hearTwoWayAudio(msToTwoWayAudio: number): void {
    this.#transferred({ msToTwoWayAudio });
  }

  #hearTalk(talk: TalkSummary, name: string): void {
    if (name === 'agent') this.#transferred({ agent: talk });
    else if (name === 'person-presses-1') this.#transferred({ person: talk });
    else this.#conversation = { ...this.#conversation, talker: talk };
  }

  #transferred(more: Transfer): void {
    const { transfer } = this.#conversation;
    this.#conversation = { ...this.#conversation, transfer: { ...transfer, ...more } };
  }
}

/**
 * Lists everything that went wrong in the conversation. The bot and the talker must hear each
 * other, and the bot must stop talking when it's interrupted.
 */
export function problemsOfConversation({ bot, talker }: Conversation): readonly string[] {
  if (bot === undefined || talker === undefined) return ['one side reported nothing'];
  const problems: string[] = [];
  // The three turns are the talker's hello, their interruption and their answer.
  if (bot.turns < 3) problems.push(`the bot heard ${bot.turns} of 3 turns`);
  if (bot.interruptions !== 1) problems.push(`the bot was interrupted ${bot.interruptions} times`);
  if (talker.answers < 1) problems.push('the talker gave no answer');
  if (talker.silencedAfterMs === undefined) problems.push('the bot did not fall silent');
  return problems;
}

export function describeConversation({ bot, talker }: Conversation): readonly string[] {
  const lines: string[] = [];
  if (bot !== undefined) {
    lines.push(`the bot heard ${seconds(bot.voiceMs)} of voice in ${bot.turns} turns`);
  }
  if (talker !== undefined) {
    lines.push(`the talker heard ${seconds(talker.voiceMs)} of voice in ${talker.turns} turns`);
  }
  if (talker?.silencedAfterMs !== undefined) {
    lines.push(
      `when the talker interrupted, the bot fell silent after ${talker.silencedAfterMs} ms`,
    );
  }
  return lines;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
