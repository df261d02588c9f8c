// Creates spans for this process's calls from call events, so `src/calls` doesn't need to know
// about tracing. The `queue`, `leg` and `end` spans are children of the intake span, even if a
// different process accepted the request. Each gateway that we try gets its own leg span, which is
// the parent of that gateway's other spans. If this process has taken over a call, the call gets
// only an `end` span.

import {
  type Attributes,
  type Context,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { LRUCache } from 'lru-cache';
import type { AcceptedCall } from '../calls/call-types.ts';
import type { CallEvent, DataOf, EventOf, TerminalEvent } from '../calls/contract/call-event.ts';
import { upTo } from '../lib/growing-cache.ts';
import { type TraceHeaders, traceHeadersOf } from '../lib/trace-context.ts';

/**
 * Maximum number of calls in memory, which is more than a process ever has at a time. If another
 * process has taken over a call, we never see the end event, but the cache eventually evicts the
 * call.
 */
const maxCalls = 20_000;

type Leg = {
  readonly span: Span;
  /** Context with the leg's span as the parent of other spans. */
  readonly context: Context;
  readonly startedAt: Date;
  readonly ringingAt?: Date;
  readonly answeredAt?: Date;
  /** Undefined if no detection is running. */
  readonly detection?: Span;
};

export class CallSpans {
  readonly #tracer: Tracer;
  readonly #contextOf: (parent: TraceHeaders | undefined) => Context;
  readonly #legs = new LRUCache<string, Leg>(upTo(maxCalls));

  constructor(tracer: Tracer, contextOf: (parent: TraceHeaders | undefined) => Context) {
    this.#tracer = tracer;
    this.#contextOf = contextOf;
  }

  onEvent(call: AcceptedCall, event: CallEvent): void {
    const at = new Date(event.time);
    const { type } = event;
    if (type === 'dialing') this.#dialing(call, event, at);
    else if (type === 'completed' || type === 'failed') this.#ended(call, event, at);
    else this.#change(call, (leg) => this.#progress(leg, call, event, at));
  }

  #progress(leg: Leg, call: AcceptedCall, event: CallEvent, at: Date): Leg {
    if (event.type === 'ringing') return this.#ringing(leg, call, event.data, at);
    if (event.type === 'answered') return this.#answered(leg, call, at);
    if (event.type === 'amd') return detected(leg, event, at);
    // Other events are added to the leg's span.
    leg.span.addEvent(event.type, {}, at);
    return leg;
  }

  #change(call: AcceptedCall, next: (leg: Leg) => Leg): void {
    const leg = this.#legs.get(call.callId);
    if (leg !== undefined) this.#legs.set(call.callId, next(leg));
  }

  #dialing(call: AcceptedCall, { data }: EventOf<'dialing'>, at: Date): void {
    const context = this.#contextOf(traceHeadersOf(call.request));
    const before = this.#legs.get(call.callId);
    if (data.attempt === 1) this.#span('queue', call, context, call.acceptedAt, at);
    if (before !== undefined) this.#endLeg(before, call, at, reasonOf(data));
    const attributes = {
      'offhook.gateway': data.gateway,
      'offhook.gateway.attempt': data.attempt,
      ...(data.trunk === undefined ? {} : { 'offhook.trunk': data.trunk }),
    };
    const span = this.#start('leg', call, context, at, attributes, SpanKind.CLIENT);
    this.#legs.set(call.callId, {
      ...{ span, startedAt: at },
      context: trace.setSpan(context, span),
    });
  }

  #ringing(leg: Leg, call: AcceptedCall, data: DataOf<'ringing'>, at: Date): Leg {
    leg.span.setAttribute('offhook.early_media', data.earlyMedia);
    this.#span('dialing', call, leg.context, leg.startedAt, at);
    return { ...leg, ringingAt: at };
  }

  #answered(leg: Leg, call: AcceptedCall, at: Date): Leg {
    this.#spanBeforeAnswer(leg, call, at);
    const isDetecting = call.request.machineDetection !== 'disabled';
    if (!isDetecting) return { ...leg, answeredAt: at };
    const detection = this.#start('detection', call, leg.context, at, {});
    return { ...leg, answeredAt: at, detection };
  }

  /** Creates the span that ends when the leg is answered, or when it ends unanswered. */
  #spanBeforeAnswer({ context, startedAt, ringingAt }: Leg, call: AcceptedCall, at: Date): void {
    if (ringingAt === undefined) this.#span('dialing', call, context, startedAt, at);
    else this.#span('ringing', call, context, ringingAt, at);
  }

  #ended(call: AcceptedCall, { type, data }: TerminalEvent, at: Date): void {
    const leg = this.#legs.get(call.callId);
    this.#legs.delete(call.callId);
    const context = this.#contextOf(traceHeadersOf(call.request));
    if (leg !== undefined) {
      this.#endLeg(leg, call, at, type === 'failed' ? data.outcome : undefined);
    } else if (type === 'failed' && data.outcome !== 'unknown') {
      // The call never left the queue.
      this.#span('queue', call, context, call.acceptedAt, at);
    }
    const end = this.#start('end', call, context, at, {
      'offhook.outcome': data.outcome,
      'offhook.reason_code': data.reasonCode,
      ...(data.sipStatus === undefined ? {} : { 'offhook.sip_status': data.sipStatus }),
    });
    end.end(at);
  }

  #endLeg(leg: Leg, call: AcceptedCall, at: Date, failure: string | undefined): void {
    const { span, answeredAt, detection } = leg;
    if (answeredAt === undefined) this.#spanBeforeAnswer(leg, call, at);
    detection?.end(at);
    if (failure !== undefined) {
      span.setAttribute('error.type', failure);
      span.setStatus({ code: SpanStatusCode.ERROR });
    }
    span.end(at);
  }

  #span(name: string, call: AcceptedCall, parent: Context, from: Date, to: Date): void {
    this.#start(name, call, parent, from, {}).end(to);
  }

  #start(
    name: string,
    { callId, botId }: AcceptedCall,
    parent: Context,
    startTime: Date,
    more: Attributes,
    kind = SpanKind.INTERNAL,
  ): Span {
    const attributes = { 'offhook.call.id': callId, 'offhook.bot.id': botId, ...more };
    return this.#tracer.startSpan(name, { startTime, kind, attributes }, parent);
  }
}

function detected(leg: Leg, { data: { amd } }: EventOf<'amd'>, at: Date): Leg {
  const { detection, ...rest } = leg;
  if (detection === undefined) return leg;
  detection.addEvent(amd.event, { 'offhook.amd.reason': amd.reason }, at);
  if (amd.event !== 'amd_stopped') return leg;
  detection.end(at);
  return rest;
}

/** Returns why the previous gateway failed. */
function reasonOf({ failedAttempts }: DataOf<'dialing'>): string {
  const last = failedAttempts?.at(-1);
  return last?.sipStatus === undefined ? 'no-response' : String(last.sipStatus);
}
