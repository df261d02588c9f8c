// The OpenAPI document: it is complete, and every reference in it has a target.

import { beforeAll, describe, expect, test } from 'vitest';
import { dialoutExample } from '../../src/api/dialout/dialout-schema.ts';
import { sandboxNumbers } from '../../src/embedded/sandbox/sandbox-numbers.ts';
import { version } from '../../src/version.ts';
import { forSuite } from '../support/opened.ts';
import { dial, startHarness } from './support.ts';

type Node = { readonly [name: string]: Node };

let document: Node;
const harness = forSuite(startHarness);
beforeAll(async () => {
  document = (await harness.server.inject('/openapi.json')).json();
});

function walk(value: unknown, visit: (node: Record<string, unknown>) => void): void {
  if (typeof value !== 'object' || value === null) return;
  visit(value as Record<string, unknown>);
  for (const child of Object.values(value)) walk(child, visit);
}

/** Requests of Twilio's libraries have other credentials, and errors in Twilio's form. */
function isInTwiliosForm({ tags }: Record<string, unknown>): boolean {
  return Array.isArray(tags) && tags.includes('twilio');
}

describe('/openapi.json', () => {
  test('is OpenAPI 3.1 with the public URL', () => {
    expect(document['openapi']).toBe('3.1.0');
    expect(document['servers']).toEqual([{ url: 'https://calls.example.com' }]);
  });

  test('has the version of the product, like /asyncapi.json', async () => {
    const events = await harness.server.inject('/asyncapi.json');

    expect(document['info']?.['version']).toBe(version);
    expect(events.json<Node>()['info']?.['version']).toBe(version);
  });

  test('has every operation, with an id of its own', () => {
    const operations = Object.entries(document['paths'] ?? {}).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) =>
        JSON.stringify([method, path, operation['operationId']]),
      ),
    );

    expect(operations.sort()).toEqual([
      '["delete","/api/public/bot/{botId}/calls/{callId}","endCall"]',
      '["delete","/api/public/bot/{botId}/calls/{callId}/recording","deleteRecording"]',
      '["delete","/api/public/persons/{number}","deletePerson"]',
      '["delete","/api/public/rules/{ruleSetName}","deleteRuleSet"]',
      '["delete","/api/public/sounds/{soundName}","deleteSound"]',
      '["delete","/api/public/suppressions/{number}","deleteSuppression"]',
      '["get","/2010-04-01/Accounts/{accountSid}/Calls/{callSid}.json","readCallAsTwilio"]',
      '["get","/api/public/bot/{botId}/calls","listCalls"]',
      '["get","/api/public/bot/{botId}/calls/callers","summarizeCallers"]',
      '["get","/api/public/bot/{botId}/calls/summary","summarizeCalls"]',
      '["get","/api/public/bot/{botId}/calls/{callId}","getCall"]',
      '["get","/api/public/bot/{botId}/calls/{callId}/context","getCallContext"]',
      '["get","/api/public/bot/{botId}/calls/{callId}/events","followCall"]',
      '["get","/api/public/bot/{botId}/calls/{callId}/notifications","listNotifications"]',
      '["get","/api/public/bot/{botId}/calls/{callId}/recording","getRecording"]',
      '["get","/api/public/bot/{botId}/events","followEvents"]',
      '["get","/api/public/bot/{botId}/notifications","listDeadLetters"]',
      '["get","/api/public/calls","listCallsOfApp"]',
      '["get","/api/public/calls/callers","summarizeCallersOfApp"]',
      '["get","/api/public/calls/summary","summarizeCallsOfApp"]',
      '["get","/api/public/calls/{callId}","getCallOfApp"]',
      '["get","/api/public/campaigns","listCampaigns"]',
      '["get","/api/public/campaigns/{campaign}","getCampaign"]',
      '["get","/api/public/events","followEventsOfApp"]',
      '["get","/api/public/notifications","listDeadLettersOfApp"]',
      '["get","/api/public/records","exportRecords"]',
      '["get","/api/public/rules","listRuleSets"]',
      '["get","/api/public/rules/{ruleSetName}","getRuleSet"]',
      '["get","/api/public/sounds","listSounds"]',
      '["get","/api/public/sounds/{soundName}","getSound"]',
      '["get","/api/public/suppressions","listSuppressions"]',
      '["get","/api/public/suppressions/{number}","getSuppression"]',
      '["post","/2010-04-01/Accounts/{accountSid}/Calls/{callSid}.json","hangUpAsTwilio"]',
      '["post","/api/1.1/public/bot/{botId}/V2/contactcenter/dialout","dialOut"]',
      '["post","/api/public/bot/{botId}/calls/{callId}/commands","commandCall"]',
      '["post","/api/public/bot/{botId}/notifications/replay","replayNotifications"]',
      '["post","/api/public/bot/{botId}/notifications/{eventId}/replay","replayNotification"]',
      '["post","/api/public/suppressions","importSuppressions"]',
      '["post","/api/public/suppressions/check","checkSuppressions"]',
      '["put","/api/public/rules/{ruleSetName}","putRuleSet"]',
      '["put","/api/public/sounds/{soundName}","putSound"]',
      '["put","/api/public/suppressions/{number}","putSuppression"]',
    ]);
  });

  test('has a target for every reference, and a reference to every schema', () => {
    const references = new Set<string>();
    walk(document, (node) => {
      if (typeof node['$ref'] === 'string') references.add(node['$ref']);
    });
    const names = Object.keys(document['components']?.['schemas'] ?? {});

    expect([...references].sort()).toEqual(
      names.map((name) => `#/components/schemas/${name}`).sort(),
    );
    expect(names).toEqual(
      expect.arrayContaining([
        'Problem',
        'CallNotification',
        'CallEventNotification',
        'CallContext',
      ]),
    );
  });

  test('declares each path parameter once, in its own path', () => {
    for (const [path, methods] of Object.entries(document['paths'] ?? {})) {
      const placed = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? '');
      for (const operation of Object.values(methods)) {
        const declared = (
          (operation['parameters'] ?? []) as unknown as { in: string; name: string }[]
        )
          .filter((parameter) => parameter.in === 'path')
          .map((parameter) => parameter.name);
        expect(declared.sort()).toEqual(placed.sort());
      }
    }
  });

  test('documents a token and problems for every operation', () => {
    walk(document['paths'], (node) => {
      if (node['operationId'] === undefined || isInTwiliosForm(node)) return;
      expect(node['security']).toEqual([{ auth: [] }]);
      for (const [status, answer] of Object.entries(node['responses'] as Node)) {
        const types = status.startsWith('2')
          ? successOf(node['operationId'], status)
          : ['application/problem+json'];
        expect(Object.keys(answer['content'] ?? {})).toEqual(types);
        expect(answer['description']).not.toBe('Default Response');
      }
    });
    expect(document['components']?.['securitySchemes']?.['auth']).toMatchObject({
      type: 'apiKey',
      in: 'header',
      name: 'auth',
    });
  });

  test.each(['callNotification', 'callEventNotification'])(
    'describes %s with its signature headers',
    (name) => {
      const post = document['webhooks']?.[name]?.['post'];
      const headers = ((post?.['parameters'] ?? []) as unknown as { name: string }[]).map(
        ({ name }) => name,
      );

      expect(headers).toEqual([
        'Gateway-Signature',
        'webhook-id',
        'webhook-timestamp',
        'webhook-signature',
      ]);
    },
  );

  test('has an example of a request that is accepted, and that calls no phone outside this machine', async () => {
    const response = await dial(harness, { ...dialoutExample, botId: 'st-1' });

    expect(response.statusCode).toBe(200);
    const sandboxTargets = sandboxNumbers.map(({ number }) => `tel:${number}`);
    expect(sandboxTargets).toContain(dialoutExample.target);
    expect(new URL(dialoutExample.notifyurl).hostname).toBe('127.0.0.1');
  });

  test('explains how to get each kind of credentials', () => {
    const { auth, apiKey } = document['components']?.['securitySchemes'] ?? {};

    expect(auth?.['description']).toContain('`npx offhook token`');
    expect(apiKey?.['description']).toContain('`.offhook/dev-app.json`');
  });
});

function successOf(operationId: unknown, status: string): readonly string[] {
  const streams: unknown[] = ['followEvents', 'followEventsOfApp', 'followCall'];
  const lists: unknown[] = ['listCalls', 'listCallsOfApp'];
  if (operationId === 'getRecording') {
    const audio = ['audio/wav', 'application/octet-stream'];
    return status === '206' ? audio : [...audio, 'application/json'];
  }
  if (operationId === 'exportRecords') return ['application/x-ndjson', 'text/csv'];
  if (lists.includes(operationId)) return ['application/json', 'text/csv'];
  return streams.includes(operationId) ? ['text/event-stream'] : ['application/json'];
}
