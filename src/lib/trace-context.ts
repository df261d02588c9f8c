// Implements W3C Trace Context. The `traceparent` header identifies the trace that a request
// belongs to, and `tracestate` carries vendor-specific data. Bad input never causes an exception.
// If `traceparent` is bad, we ignore it and start a new trace. If `tracestate` is bad, we ignore it
// but still use `traceparent` (sections 3.2 and 3.3).

export type TraceParent = {
  /** 32 hex digits. */
  readonly traceId: string;
  /** 16 hex digits. */
  readonly spanId: string;
  /** True if an earlier system may have recorded the trace. */
  readonly isSampled: boolean;
};

/** The headers that we pass on. A `tracestate` is meaningless without its `traceparent`. */
export type TraceHeaders = { readonly traceparent: string; readonly tracestate?: string };

/** Later versions of the header may add fields after the flags. */
const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const maxParentLength = 512;

export function parseTraceparent(header: unknown): TraceParent | undefined {
  if (typeof header !== 'string' || header.length > maxParentLength) return undefined;
  const [, version, traceId = '', spanId = '', flags = '', more] = form.exec(header.trim()) ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined))
    return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function writeTraceparent({ traceId, spanId, isSampled }: TraceParent): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`;
}

/** Limit from section 3.3.1.1. */
const maxMembers = 32;
/** We pass on this many characters. Section 3.3.1.5 requires at least 512. */
const maxKept = 512;
/** Members that are longer than this are dropped first. */
const longMember = 128;
/** We don't parse longer headers, which HTTP servers don't accept either. */
const maxStateLength = 16_384;
/**
 * The key follows Level 2 of the specification (Level 1 allows one `@`). The value can't end with a
 * space.
 */
const memberForm =
  /^[a-z0-9][a-z0-9_\-*/@]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/**
 * Returns up to 512 characters of members, in their original order. If a key occurs twice, we keep
 * the first of the two members, because it is newer.
 */
export function parseTracestate(header: unknown): string | undefined {
  if (typeof header !== 'string' || header.length > maxStateLength) return undefined;
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
 * Drops whole members until the rest fits. Long members go first, then the oldest, i.e. those at
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

/** Reads the trace headers from a request's headers. */
export function parseTraceHeaders(
  headers: Readonly<Record<string, unknown>>,
): TraceHeaders | undefined {
  const parent = parseTraceparent(headers['traceparent']);
  if (parent === undefined) return undefined;
  return traceHeaders(writeTraceparent(parent), parseTracestate(headers['tracestate']));
}

/** Reads the trace headers that were stored with a call. */
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
