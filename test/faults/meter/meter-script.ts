// Draws the calls of the meter run: who answers, what they say, when somebody comes for them, and
// when they leave. Every instant that decides an outcome keeps away from the end of the two
// seconds, because there the clocks of the callee, of the bot and of the gateway may disagree
// without anybody being wrong.

import { numberFor } from '../../support/far-end.ts';
import type { Random } from '../random.ts';
import { type MeterVoice, type VoiceKind, voiceOf } from './meter-voices.ts';

/** The person must be reached within this time. The gateway has a constant of its own. */
export const withinMs = 2_000;
/** Nothing that decides is planned within this time of an end of the two seconds. */
export const marginMs = 400;
/** The announcement replaces everybody else this long before the two seconds are over. */
export const announcementLeadMs = 200;

/** Each campaign has a rule set of its own. */
export const campaigns = {
  bots: { connected: 'bot-or-agent', abandoned: { formula: 'ftc' } },
  agents: { connected: 'agent', abandoned: { formula: 'ofcom' } },
  messages: { voice: 'recorded', abandoned: { formula: 'ftc' } },
} as const;
export type CampaignName = keyof typeof campaigns;
export const campaignNames = Object.keys(campaigns) as readonly CampaignName[];

/** All times are from the person's answer. */
export type BotPlan =
  /** Accepts the connection at once, and sends sound at this time. */
  | { readonly kind: 'speaks'; readonly atMs: number }
  /** Accepts the connection only at this time, and sends sound at once. */
  | { readonly kind: 'opensLate'; readonly atMs: number }
  /** Sends audio that nobody can hear. */
  | { readonly kind: 'silent' }
  | { readonly kind: 'mute' }
  | { readonly kind: 'refuses' };

/** `ringsOn`: until the gateway cancels. */
export type AgentPlan =
  | { readonly kind: 'answers'; readonly atMs: number }
  | { readonly kind: 'ringsOn' }
  | { readonly kind: 'busy' };

export type MeterCall = {
  readonly number: string;
  readonly campaign: CampaignName;
  /** undefined if the phone is busy. */
  readonly voice?: VoiceKind;
  /** When the person hangs up, from the answer. */
  readonly talkMs?: number;
  readonly bot?: BotPlan;
  readonly agent?: AgentPlan & { readonly number: string };
  /** When the dialer asks for the message, from the answer. */
  readonly playsMs?: number;
  /** When the dialer hangs up, from the answer. */
  readonly endsMs?: number;
  readonly announces: boolean;
};

const voiceWeights: readonly (readonly [VoiceKind | 'busy', number])[] = [
  ...([['hello', 26] as const, ['name', 18] as const, ['sentence', 18] as const] as const),
  ...([['nothing', 8] as const, ['briefMachine', 10] as const] as const),
  ...([['earlyBeep', 5] as const, ['lateBeep', 5] as const, ['mailbox', 4] as const] as const),
  ['busy', 6] as const,
];
/** By then, detection has decided about a person who is heard. */
const verdictMs = 1_400;

export function drawCall(random: Random, index: number): MeterCall {
  const campaign = random.pick(['bots', 'bots', 'agents', 'agents', 'messages'] as const);
  const kind = weighted(random, voiceWeights);
  if (kind === 'busy') {
    return { number: numberFor('busy', 0, index), campaign, announces: false };
  }
  const number = numberFor('scripted', 0, index);
  const voice = voiceOf(kind);
  const announces = campaign !== 'messages' && random.next() < 0.3;
  const gaps = safeGaps(campaign, voice, announces);
  const isLate = random.next();
  const comesAtMs =
    isLate < 0.22 ? undefined : drawIn(random, isLate < 0.65 ? gaps[0] : pickGap(random, gaps));
  const agentNumber = numberFor('scripted', 0, 5_000_000 + index);
  return {
    ...{ number, campaign, voice: kind, announces },
    ...connectionOf(random, campaign, agentNumber, comesAtMs),
    ...endingOf(random, voice, gaps, comesAtMs),
  };
}

type Gap = { readonly from: number; readonly until: number };

/**
 * Returns when something may decide an outcome: before the first end of the two seconds, between
 * two of them, and after the last.
 */
function safeGaps(
  campaign: CampaignName,
  { beginsMs, endsMs }: MeterVoice,
  announces: boolean,
): readonly [Gap, ...Gap[]] {
  const ends = [beginsMs + withinMs, endsMs + withinMs];
  const { formula } = campaigns[campaign].abandoned;
  const ruleEnd = (formula === 'ftc' ? endsMs : beginsMs) + withinMs;
  if (announces) ends.push(ruleEnd - announcementLeadMs);
  ends.sort((a, b) => a - b);
  const [first = 0] = ends;
  const last = ends.at(-1) ?? 0;
  const between = ends.slice(1).flatMap((end, place) => {
    const gap = { from: (ends[place] ?? 0) + marginMs, until: end - marginMs };
    return gap.from < gap.until ? [gap] : [];
  });
  return [
    { from: 250, until: first - marginMs },
    ...between,
    { from: last + marginMs, until: last + marginMs + 800 },
  ];
}

function connectionOf(
  random: Random,
  campaign: CampaignName,
  agentNumber: string,
  atMs: number | undefined,
): Pick<MeterCall, 'bot' | 'agent' | 'playsMs'> {
  if (campaign === 'messages') return atMs === undefined ? {} : { playsMs: atMs };
  const agent = (plan: AgentPlan) => ({ agent: { ...plan, number: agentNumber } });
  // Where only an agent counts, a bot that speaks at once changes nothing.
  const bot = { bot: { kind: 'speaks', atMs: 250 } } as const;
  if (campaign === 'agents') {
    const withBot = random.next() < 0.3 ? bot : {};
    if (atMs !== undefined) return { ...withBot, ...agent({ kind: 'answers', atMs }) };
    return { ...withBot, ...agent({ kind: random.pick(['ringsOn', 'busy']) }) };
  }
  if (atMs === undefined) return { bot: { kind: random.pick(['silent', 'mute', 'refuses']) } };
  if (random.next() < 0.2) return agent({ kind: 'answers', atMs });
  return { bot: { kind: random.pick(['speaks', 'speaks', 'opensLate']), atMs } };
}

function endingOf(
  random: Random,
  { endsMs, lengthMs }: MeterVoice,
  gaps: readonly [Gap, ...Gap[]],
  comesAtMs = 0,
): Pick<MeterCall, 'talkMs' | 'endsMs'> {
  const drawn = random.next();
  if (drawn < 0.07) return { endsMs: endsMs + random.between(500, 2_400) };
  const early = gaps.slice(0, -1).filter(({ until }) => until > endsMs + 800);
  if (drawn < 0.3 && early.length > 0) {
    const gap = random.pick(early as [Gap, ...Gap[]]);
    const leavesAtMs = drawIn(random, { ...gap, from: Math.max(gap.from, endsMs + 800) });
    // Whoever leaves within the margin of the moment at which somebody comes decides nothing.
    if (Math.abs(leavesAtMs - comesAtMs) >= marginMs) return { talkMs: leavesAtMs };
  }
  const last = gaps.at(-1)?.from ?? 0;
  const isHeld = comesAtMs > 0 && comesAtMs <= gaps[0].until;
  const overMs = Math.max(endsMs + verdictMs, lengthMs + 600, comesAtMs + 500, isHeld ? 0 : last);
  return { talkMs: overMs + random.between(0, 400) };
}

function pickGap(random: Random, gaps: readonly [Gap, ...Gap[]]): Gap {
  return random.pick(gaps);
}

function drawIn(random: Random, { from, until }: Gap): number {
  return random.between(from, Math.max(from, until));
}

function weighted<Item>(random: Random, items: readonly (readonly [Item, number])[]): Item {
  let left = random.next() * items.reduce((sum, [, weight]) => sum + weight, 0);
  for (const [item, weight] of items) {
    left -= weight;
    if (left < 0) return item;
  }
  throw new Error('there is nothing to draw from');
}
