// The two shapes of a body for provider `API`: a custom provider, whose requests the caller describes, or an existing one,
// which is mapped. Any member of the second makes it the second.

const customOnly = [
  'promptVars',
  'customVars',
  'payload',
  'outputPath',
  'inputTokensPath',
  'outputTokensPath',
];
const existingOnly = ['idp', 'bodyTab', 'mapProvider', 'llmFeatures', 'IOMappings'];
/** In `fields`. */
const mapped = ['IOMapping', 'mapProvider'];

type Members = Readonly<Record<string, unknown>>;
type Body = Members & { readonly fields: Members };
type Problem = { readonly path: string[]; readonly message: string };

/** What is wrong with the members taken together. */
export function apiFormProblems(body: Body): readonly Problem[] {
  const mark = [...existingOnly, ...mapped].find((name) => name in body || name in body.fields);
  return [
    ...placeProblems(body, 'LLM_API_URL'),
    ...placeProblems(body, 'LLM_API_KEY'),
    ...(mark === undefined ? [] : existingProblems(body, mark)),
  ];
}

/** The specification's table has these beside `fields`, while its heading suggests in them. */
function placeProblems(body: Body, name: string): readonly Problem[] {
  const [outer, inner] = [body[name], body.fields[name]];
  if (outer === undefined && inner === undefined) return [{ path: [name], message: 'is required' }];
  if (outer === undefined || inner === undefined || outer === inner) return [];
  return [{ path: ['fields', name], message: `differs from ${name} beside fields` }];
}

function existingProblems({ fields, ...body }: Body, mark: string): readonly Problem[] {
  const strangers = customOnly.filter((name) => name in body);
  const missing = mapped.filter((name) => !(name in fields));
  const { mapProvider, IOMappings } = body;
  const problems = [
    ...strangers.map((name) => ({
      path: [name],
      message: `belongs to the custom-provider form, ${mark} to the existing-provider form`,
    })),
    ...missing.map((name) => ({ path: ['fields', name], message: `is required with ${mark}` })),
  ];
  if (problems.length > 0) return problems;
  if (mapProvider !== undefined && mapProvider !== fields['mapProvider']) {
    problems.push({ path: ['mapProvider'], message: 'differs from fields.mapProvider' });
  }
  if (Array.isArray(IOMappings) && !IOMappings.includes(fields['IOMapping'])) {
    problems.push({ path: ['IOMappings'], message: 'must contain fields.IOMapping' });
  }
  return problems;
}
