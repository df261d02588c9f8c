// What is secret in a connection: keys and header values. They are sealed when they come in, and masks stand in their place
// from then on, so that nothing that reads connections ever holds one.

/** Of one length, so that a mask does not tell that of the secret. */
const stars = '*'.repeat(12);
/** Two characters of a shorter one would be too much of it. */
const shortestShown = 12;

const secretNames: ReadonlySet<string> = new Set(['API_KEY', 'LLM_API_KEY']);

/** First and last character, `s************9`; of a short one nothing. */
export function mask(secret: string): string {
  if (secret.length < shortestShown) return stars;
  return `${secret.slice(0, 1)}${stars}${secret.slice(-1)}`;
}

export function isMask(text: string): boolean {
  return text.includes(stars);
}

type WithSecrets = {
  readonly fields: Readonly<Record<string, string>>;
  readonly LLM_API_KEY?: string;
  readonly headers?: readonly { readonly key: string; readonly value: string }[];
};

/** Takes the secrets out of a body; where each stood, the settings have its mask. */
export function splitSecrets(body: WithSecrets) {
  const fields = Object.entries(body.fields);
  const { LLM_API_KEY, headers } = body;
  return {
    secrets: JSON.stringify({
      fields: Object.fromEntries(fields.filter(([name]) => secretNames.has(name))),
      LLM_API_KEY,
      headers: headers?.map(({ value }) => value),
    }),
    settings: {
      ...body,
      fields: Object.fromEntries(
        fields.map(([name, value]) => [name, secretNames.has(name) ? mask(value) : value]),
      ),
      ...(LLM_API_KEY === undefined ? {} : { LLM_API_KEY: mask(LLM_API_KEY) }),
      ...(headers === undefined
        ? {}
        : { headers: headers.map(({ key, value }) => ({ key, value: mask(value) })) }),
    },
  };
}
