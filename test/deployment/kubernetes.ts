// Reads the manifests under .docker/kubernetes, and checks them against the types of Kubernetes.

import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { repository, textOf } from './compose.ts';

const run = promisify(execFile);

/** The members that tests read. Kubernetes' own types check the rest. */
const environmentVariable = z.object({
  name: z.string(),
  value: z.string().optional(),
  valueFrom: z
    .object({
      fieldRef: z.object({ fieldPath: z.string() }).optional(),
      secretKeyRef: z.object({ name: z.string(), key: z.string() }).optional(),
    })
    .optional(),
});
const probe = z.object({ httpGet: z.object({ path: z.string(), port: z.string() }) });
const container = z.object({
  name: z.string(),
  image: z.string(),
  args: z.array(z.string()).optional(),
  restartPolicy: z.string().optional(),
  env: z.array(environmentVariable),
  volumeMounts: z.array(z.object({ name: z.string(), mountPath: z.string() })),
  securityContext: z.unknown(),
});
export const statefulSet = z.object({
  spec: z.object({
    serviceName: z.string(),
    selector: z.object({ matchLabels: z.record(z.string(), z.string()) }),
    template: z.object({
      metadata: z.object({ labels: z.record(z.string(), z.string()) }),
      spec: z.object({
        hostNetwork: z.boolean(),
        terminationGracePeriodSeconds: z.number(),
        initContainers: z.tuple([container]),
        containers: z.tuple([
          container.extend({ startupProbe: probe, livenessProbe: probe, readinessProbe: probe }),
        ]),
        volumes: z.array(z.object({ name: z.string() })),
      }),
    }),
    volumeClaimTemplates: z.array(z.object({ metadata: z.object({ name: z.string() }) })),
  }),
});

export type Manifest = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
};

export function readManifests(file: string): readonly Manifest[] {
  return parseAllDocuments(textOf(`.docker/kubernetes/${file}`)).map((document) => {
    const [error] = document.errors;
    if (error !== undefined) throw error;
    return document.toJS() as Manifest;
  });
}

/** The module of `kubernetes-types` that declares a kind. */
function moduleOf(apiVersion: string): string {
  return `kubernetes-types/${apiVersion === 'v1' ? 'core/v1' : apiVersion}`;
}

/**
 * Compiles the manifests as literals of Kubernetes' types, so that a misspelled or misplaced member
 * is an error. Returns the compiler's errors.
 */
export async function typeErrors(manifests: readonly Manifest[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-manifests-'));
  try {
    await symlink(join(repository, 'node_modules'), join(folder, 'node_modules'));
    const lines = manifests.map((manifest, index) => {
      const { apiVersion, kind } = manifest;
      const type = `import('${moduleOf(apiVersion)}').${kind}`;
      return `export const manifest${index}: ${type} = ${JSON.stringify(manifest, undefined, 2)};`;
    });
    await writeFile(join(folder, 'manifests.ts'), lines.join('\n'));
    const compiler = join(repository, 'node_modules/typescript/bin/tsc');
    const options = ['--noEmit', '--strict', '--module', 'nodenext', '--skipLibCheck'];
    await run(process.execPath, [compiler, ...options, 'manifests.ts'], { cwd: folder });
    return '';
  } catch (error) {
    // The compiler prints its errors on the standard output.
    const { stdout } = error as { stdout?: string };
    if (stdout === undefined || stdout === '') throw error;
    return stdout;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
