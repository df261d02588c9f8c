export type DialTarget =
  /** E.164 digits without `+` or separators. */
  | { readonly kind: 'tel'; readonly number: string }
  /** Default port: that of the transport. NAPTR and SRV are not queried. */
  | { readonly kind: 'sip'; readonly user: string; readonly host: string; readonly port?: number };

export type TargetResult =
  | { readonly ok: true; readonly target: DialTarget }
  | { readonly ok: false; readonly message: string };

/** Returns the URI of a target, as a request may write it. */
export function uriOfTarget(target: DialTarget): string {
  if (target.kind === 'tel') return `tel:+${target.number}`;
  const host = target.host.includes(':') ? `[${target.host}]` : target.host;
  return `sip:${target.user}@${host}${target.port === undefined ? '' : `:${target.port}`}`;
}
