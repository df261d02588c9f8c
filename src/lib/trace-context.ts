// W3C Trace Context: the headers `traceparent`, by which a request says of which trace it is a part, and `tracestate`, what the systems
// before add for themselves. Never throws for what it is given: a `traceparent` that is none is left out, and a trace begins anew; a
// `tracestate` that is none is left out alone (sections 3.2 and 3.3).

export type TraceParent = {
  /** 32 hex digits. */
  readonly traceId: string;
  /** 16 hex digits. */
  readonly spanId: string;
  /** Whether a system before may have recorded it. */
  readonly isSampled: boolean;
};

/** As they are passed on. A `tracestate` means nothing without the `traceparent` that it came with. */
export type TraceHeaders = { readonly traceparent: string; readonly tracestate?: string };

/** A later version may have more behind the flags. */
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

/** Section 3.3.1.1; a list of more is none. */
const mostMembers = 32;
/** What has to be passed on at least, and all that is (section 3.3.1.5). */
const mostKept = 512;
/** Longer members are the first to go. */
const longMember = 128;
/** Beyond what HTTP servers take as headers: not looked at. */
const longestState = 16_384;
/** A key as Level 2 has it (Level 1 allows `@` once), and a value that does not end with a space. */
const memberForm =
  /^[a-z0-9][a-z0-9_\-*/@]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/** Its members as they came, at most 512 characters of them. Of a key that is there twice, the first: it is the later one. */
export function parseTracestate(header: unknown): string | undefined {
  if (typeof header !== 'string' || header.length > longestState) return undefined;
  const members = header
    .split(',')
    .map((member) => member.trim())
    .filter((member) => member !== '');
  if (members.length > mostMembers || !members.every((member) => memberForm.test(member)))
    return undefined;
  const byKey = new Map<string, string>();
  for (const member of members) {
    const key = member.slice(0, member.indexOf('='));
    if (!byKey.has(key)) byKey.set(key, member);
  }
  return shortened([...byKey.values()])?.join(',');
}

/** Whole members go: the long ones first, then from the end, where the oldest stand. */
function shortened(members: string[]): readonly string[] | undefined {
  const kept = [...members];
  while (kept.join(',').length > mostKept) {
    const long = kept.findLastIndex((member) => member.length > longMember);
    kept.splice(long === -1 ? kept.length - 1 : long, 1);
  }
  return kept.length === 0 ? undefined : kept;
}

/** What came with a request. */
export function parseTraceHeaders(
  headers: Readonly<Record<string, unknown>>,
): TraceHeaders | undefined {
  const parent = parseTraceparent(headers['traceparent']);
  if (parent === undefined) return undefined;
  return traceHeaders(writeTraceparent(parent), parseTracestate(headers['tracestate']));
}

/** Of what was kept of a call. */
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
