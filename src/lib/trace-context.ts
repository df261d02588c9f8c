// W3C Trace Context. The header `traceparent` says to which trace a request belongs. `tracestate`
// carries data of tracing systems on the way. Nothing here throws on bad input. A bad `traceparent`
// is ignored, and a new trace begins. A bad `tracestate` is ignored without affecting `traceparent`
// (sections 3.2 and 3.3).

export type TraceParent = {
  /** 32 hex digits. */
  readonly traceId: string;
  /** 16 hex digits. */
  readonly spanId: string;
  /** Whether an earlier system may have recorded the trace. */
  readonly isSampled: boolean;
};

/**
 * The headers as they are passed on. A `tracestate` means nothing without its own `traceparent`.
 */
export type TraceHeaders = { readonly traceparent: string; readonly tracestate?: string };

/** A later version of the header may have more fields after the flags. */
const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const longestParent = 512;

export function parseTraceparent(header: unknown): TraceParent | undefined {
  if (typeof header !== 'string' || header.length > longestParent) return undefined;
  const [, version, traceId = '', spanId = '', flags = '', more] = form.exec(header.trim()) ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined))
    return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function writeTraceparent({ traceId, spanId, isSampled }: TraceParent): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`;
}

/** A list with more members is invalid (section 3.3.1.1). */
const maxMembers = 32;
/** Maximum length that we pass on. Section 3.3.1.5 requires at least 512 characters. */
const maxKept = 512;
/** Members longer than this are dropped first. */
const longMember = 128;
/** We don't parse longer headers. HTTP servers don't accept them either. */
const longestState = 16_384;
/**
 * A key in the form of Level 2 (Level 1 allows one `@`), and a value that does not end with a
 * space.
 */
const memberForm =
  /^[a-z0-9][a-z0-9_\-*/@]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/**
 * Returns the members in their order, at most 512 characters of them. If a key occurs twice, the
 * first member counts, because it is the newer one.
 */
export function parseTracestate(header: unknown): string | undefined {
  if (typeof header !== 'string' || header.length > longestState) return undefined;
  const members = header
    .split(',')
    .map((member) => member.trim())
    .filter((member) => member !== '');
  if (members.length > maxMembers || !members.every((member) => memberForm.test(member)))
    return undefined;
  const byKey = new Map<string, string>();
  for (const member of members) {
    const key = member.slice(0, member.indexOf('='));
    if (!byKey.has(key)) byKey.set(key, member);
  }
  return shortened([...byKey.values()])?.join(',');
}

/**
 * Drops whole members until the rest fits: first the long ones, then the oldest ones, which are at
 * the end.
 */
function shortened(members: string[]): readonly string[] | undefined {
  const kept = [...members];
  while (kept.join(',').length > maxKept) {
    const long = kept.findLastIndex((member) => member.length > longMember);
    kept.splice(long === -1 ? kept.length - 1 : long, 1);
  }
  return kept.length === 0 ? undefined : kept;
}

/** Reads the headers of a request. */
export function parseTraceHeaders(
  headers: Readonly<Record<string, unknown>>,
): TraceHeaders | undefined {
  const parent = parseTraceparent(headers['traceparent']);
  if (parent === undefined) return undefined;
  return traceHeaders(writeTraceparent(parent), parseTracestate(headers['tracestate']));
}

/** Returns the headers that were stored with a call. */
export function traceHeadersOf({
  traceparent,
  tracestate,
}: {
  readonly traceparent?: string | null | undefined;
  readonly tracestate?: string | null | undefined;
}): TraceHeaders | undefined {
  return traceparent == null ? undefined : traceHeaders(traceparent, tracestate ?? undefined);
}

function traceHeaders(traceparent: string, tracestate: string | undefined): TraceHeaders {
  return tracestate === undefined ? { traceparent } : { traceparent, tracestate };
}
