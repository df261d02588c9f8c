// The two forms of a request body for the provider `API`. In the custom-provider form, the client
// describes the requests to the provider. In the existing-provider form, the client maps its
// provider to a known provider. If the body contains any field from the existing-provider form, we
// assume that form.

const customOnly = [
  'promptVars',
  'customVars',
  'payload',
  'outputPath',
  'inputTokensPath',
  'outputTokensPath',
];
const existingOnly = ['idp', 'bodyTab', 'mapProvider', 'llmFeatures', 'IOMappings'];
/**
 * Fields that may appear in `fields` or beside it. The specification mentions both places, but its
 * table only requires the first.
 */
const mapped = [
  { inside: 'IOMapping', beside: 'IOMappings' },
  { inside: 'mapProvider', beside: 'mapProvider' },
] as const;

type Members = Readonly<Record<string, unknown>>;
type Body = Members & { readonly fields: Members };
type Problem = { readonly path: string[]; readonly message: string };

/** Returns problems with combinations of fields. */
export function apiFormProblems(body: Body): readonly Problem[] {
  const marks = [...existingOnly, ...mapped.map(({ inside }) => inside)];
  const mark = marks.find((name) => name in body || name in body.fields);
  return [
    ...placeProblems(body, 'LLM_API_URL'),
    ...placeProblems(body, 'LLM_API_KEY'),
    ...(mark === undefined ? [] : existingProblems(body, mark)),
  ];
}

/**
 * Checks a field that is required either in `fields` or beside it. In the specification's table,
 * the field is beside `fields`, but the table's heading suggests that the field belongs inside.
 */
function placeProblems(body: Body, name: string): readonly Problem[] {
  const [outer, inner] = [body[name], body.fields[name]];
  if (outer === undefined && inner === undefined) return [{ path: [name], message: 'is required' }];
  if (!differ(outer, inner)) return [];
  return [{ path: ['fields', name], message: `differs from ${name} beside fields` }];
}

function existingProblems({ fields, ...body }: Body, mark: string): readonly Problem[] {
  const fromCustomForm = customOnly.filter((name) => name in body);
  const missing = mapped.filter(
    ({ inside, beside }) => !(inside in fields) && isAbsent(body[beside]),
  );
  const { mapProvider, IOMappings } = body;
  const problems = [
    ...fromCustomForm.map((name) => ({
      path: [name],
      message: `belongs to the custom-provider form, ${mark} to the existing-provider form`,
    })),
    ...missing.map(({ inside, beside }) => ({
      path: ['fields', inside],
      message: `is required with ${mark}, here or as ${beside} beside fields`,
    })),
  ];
  if (problems.length > 0) return problems;
  if (differ(mapProvider, fields['mapProvider'])) {
    problems.push({ path: ['mapProvider'], message: 'differs from fields.mapProvider' });
  }
  const { IOMapping } = fields;
  if (IOMapping !== undefined && Array.isArray(IOMappings) && !IOMappings.includes(IOMapping)) {
    problems.push({ path: ['IOMappings'], message: 'must contain fields.IOMapping' });
  }
  return problems;
}

function isAbsent(value: unknown): boolean {
  return value === undefined || (Array.isArray(value) && value.length === 0);
}

function differ(outer: unknown, inner: unknown): boolean {
  return outer !== undefined && inner !== undefined && outer !== inner;
}
