export type DialTarget =
  | {
      readonly kind: 'tel';
      /** E.164 digits without `+` or separators. */
      readonly number: string;
      /** Digits of the extension (RFC 3966). */
      readonly ext?: string;
    }
  /** A number that is only valid within a context (RFC 3966, section 5.1.5). */
  | {
      readonly kind: 'local';
      /** Digits, `*` and `#`, without separators. */
      readonly digits: string;
      /** A domain in lower case, or `+` and the first digits of global numbers. */
      readonly phoneContext: string;
      readonly ext?: string;
    }
  /** Default port: the transport's own. We don't query NAPTR or SRV. */
  | { readonly kind: 'sip'; readonly user: string; readonly host: string; readonly port?: number };

export type TargetResult =
  | { readonly ok: true; readonly target: DialTarget }
  | { readonly ok: false; readonly message: string };

/** Returns the target's URI in the form that requests use. */
export function uriOfTarget(target: DialTarget): string {
  switch (target.kind) {
    case 'tel':
      return `tel:+${target.number}${extensionOf(target)}`;
    case 'local':
      // RFC 3966, section 3: `ext` comes before `phone-context`.
      return `tel:${target.digits}${extensionOf(target)};phone-context=${target.phoneContext}`;
    case 'sip': {
      const host = target.host.includes(':') ? `[${target.host}]` : target.host;
      return `sip:${target.user}@${host}${target.port === undefined ? '' : `:${target.port}`}`;
    }
  }
}

function extensionOf({ ext }: { readonly ext?: string }): string {
  return ext === undefined ? '' : `;ext=${ext}`;
}
