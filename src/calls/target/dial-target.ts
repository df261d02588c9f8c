export type DialTarget =
  /** E.164 digits without `+` or separators. */
  | { readonly kind: 'tel'; readonly number: string }
  /** Default port: the transport's own. We don't query NAPTR or SRV. */
  | { readonly kind: 'sip'; readonly user: string; readonly host: string; readonly port?: number };

export type TargetResult =
  | { readonly ok: true; readonly target: DialTarget }
  | { readonly ok: false; readonly message: string };

/** Returns the target's URI in the form that requests use. */
export function uriOfTarget(target: DialTarget): string {
  if (target.kind === 'tel') return `tel:+${target.number}`;
  const host = target.host.includes(':') ? `[${target.host}]` : target.host;
  return `sip:${target.user}@${host}${target.port === undefined ? '' : `:${target.port}`}`;
}
