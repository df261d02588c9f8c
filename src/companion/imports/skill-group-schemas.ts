// Schemas for an import's body. Exports from contact centers contain fields that the specification
// doesn't list. We keep those unchanged.

import { z } from 'zod';
import { timestamp } from '../../calls/contract/timestamp.ts';
import { jsonProblem } from '../../http/stored-json.ts';
import { boundedArray } from '../../http/validation.ts';
import { identifier } from '../../lib/ids.ts';
import { nextCursor, pageParameters } from '../pages.ts';

export const importTypes = ['skillGroups'] as const;

const identifiers = boundedArray(identifier, 10_000);
const name = z.string().min(1).max(256);

const members = {
  _id: identifier,
  name,
  description: z.string().max(10_000).exactOptional(),
  status: name.describe('for example `ACTIVE`'),
  lname: name
    .refine((text) => text === text.toLowerCase(), 'must be lower case')
    .exactOptional()
    .describe('the name in lower case'),
  isDefault: z.boolean(),
  iId: identifier.describe('application (stream)'),
  createdByAId: identifier.describe('the agent who created it'),
  agents: identifiers.exactOptional(),
};

const skill = z.looseObject(members).meta({ id: 'Skill' });

/** Limits the size of a record. Even large groups of agents and skills need far less. */
const maxRecordBytes = 512 * 1_024;

export const skillGroup = z
  .looseObject({
    ...members,
    color: z
      .string()
      .regex(/^#([0-9A-Fa-f]{3,4}|[0-9A-Fa-f]{6}|[0-9A-Fa-f]{8})$/, 'must be a hex color code')
      .exactOptional(),
    agentGroups: identifiers.exactOptional(),
    skills: boundedArray(skill, 1_000).exactOptional(),
  })
  .superRefine((record, context) => {
    const problem = jsonProblem(record, maxRecordBytes);
    if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
  })
  .meta({ id: 'SkillGroup', description: 'Fields that are not listed are kept unchanged.' });

const unsupported = `must be ${importTypes.join(' or ')}: no other type can be imported`;
const type = z.enum(importTypes, {
  error: ({ input }) => (input === undefined ? 'is required' : unsupported),
});
/**
 * Limits the records in an import. We check all the records before we store any of them, and we
 * store them in one statement.
 */
const maxRecords = 5_000;

const metaData = z.object({
  userId: identifier.describe('the user who imports'),
  orgId: identifier,
  type,
  accountId: identifier,
});

const place = { accountId: identifier, orgId: identifier, type };
export const importQuery = z.object(place);
export const importedQuery = z.strictObject({ ...place, ...pageParameters });

/** Loose, because requests have other headers too. */
export const importHeaders = z.looseObject({
  accountid: identifier.describe('must equal `accountId` in the query'),
});

/**
 * We check the records later, one by one, so we can give up on a body after a hundred errors.
 */
export const importEnvelope = z.object({
  data: boundedArray(z.unknown(), maxRecords).pipe(z.array(z.unknown()).min(1)),
  metaData,
});

const exampleSkill = {
  _id: 'sk-1b2c3d',
  name: 'Invoices',
  isDefault: false,
  status: 'ACTIVE',
  lname: 'invoices',
  iId: 'st-1b2c3d',
  createdByAId: 'a-4711',
  agents: ['a-4711'],
};

export const importExample = {
  data: [
    {
      _id: 'sg-1b2c3d',
      name: 'Billing',
      description: 'Everything about invoices',
      status: 'ACTIVE',
      color: '#1f77b4',
      lname: 'billing',
      isDefault: false,
      iId: 'st-1b2c3d',
      createdByAId: 'a-4711',
      agentGroups: ['ag-1'],
      agents: ['a-4711'],
      skills: [exampleSkill],
    },
  ],
  metaData: { userId: 'u-1', orgId: 'o-1', type: 'skillGroups' as const, accountId: 'acme' },
};

/** The body as the OpenAPI document describes it. */
export const importBody = z
  .object({ data: z.array(skillGroup).min(1).max(maxRecords), metaData })
  .meta({ id: 'SkillGroupImport', examples: [importExample] });

export const importAnswer = z
  .object({ msg: z.string() })
  .meta({ id: 'ImportAnswer', examples: [{ msg: '1 skill group was imported.' }] });

export const importedPage = z
  .object({
    records: z
      .array(
        z.object({
          record: z
            .looseObject({ _id: z.string() })
            .describe('the record as it was imported, with all its fields'),
          botId: z.string().describe('the bot that the import named'),
          importedAt: timestamp,
          importedBy: z.string().describe('`userId` from the import’s `metaData`'),
        }),
      )
      .describe('ordered by `_id`'),
    nextCursor,
  })
  .meta({
    id: 'ImportedRecordPage',
    examples: [
      {
        records: importExample.data.map((record) => ({
          record,
          botId: 'st-1b2c3d',
          importedAt: '2026-11-20T09:30:00.000Z',
          importedBy: importExample.metaData.userId,
        })),
        nextCursor: 'c2ctMWIyYzNk',
      },
    ],
  });
