// Gateways that record calls of phones with marks. They share a PostgreSQL, a spool and a bucket.

import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type Cluster, startCluster } from '../../support/cluster.ts';
import { type FarCall, numberFor } from '../../support/far-end.ts';
import type { GatewayProcess } from '../../support/gateway-process.ts';
import { startTestS3, type TestS3 } from '../../support/s3-server.ts';
import { makeWav } from '../../support/wav.ts';
import { mountSmallDisk, type SmallDisk } from '../servers/small-disk.ts';
import { leaseMs } from '../shared-faults.ts';
import { BucketProxy } from './bucket-proxy.ts';
import { MarkedPhones } from './marked-phones.ts';
import { markedSound } from './marks.ts';

export type PlacedCall = {
  readonly number: string;
  readonly callId: string;
  readonly isRecorded: boolean;
  readonly isEncrypted: boolean;
};

export type CallWish = {
  readonly index: number;
  readonly talkMs: number;
  readonly isRecorded: boolean;
  readonly isEncrypted: boolean;
};

type Parts = {
  readonly cluster: Cluster;
  readonly phones: MarkedPhones;
  readonly proxy: BucketProxy;
  readonly s3: TestS3;
  readonly spool: string;
  /** The disk of the spool, if it is small. */
  readonly disk: SmallDisk | undefined;
};

export type WorldOptions = {
  /** The URL of an empty database. */
  readonly databaseUrl: string;
  readonly gateways: number;
  /** Whether the spool is on a disk that `fill` can fill. */
  readonly hasSmallDisk: boolean;
};

const soundName = 'marks';
const keyName = 'faults';
/** The person talks for a moment before they hear something. */
const playsAfterMs = 200;
const ringMs = 60;
const mostTries = 50;

export class RecordingWorld implements AsyncDisposable {
  readonly parts: Parts;
  readonly privateKey: KeyObject;
  readonly calls: PlacedCall[] = [];
  readonly nodes = new Map<string, GatewayProcess>();
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #publicPem: string;

  private constructor(parts: Parts) {
    this.parts = parts;
    const { publicKey, privateKey } = generateKeyPairSync('x25519');
    this.privateKey = privateKey;
    this.#publicPem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
  }

  static async start({
    databaseUrl,
    gateways,
    hasSmallDisk,
  }: WorldOptions): Promise<RecordingWorld> {
    const disk = hasSmallDisk ? await mountSmallDisk() : undefined;
    if (hasSmallDisk && disk === undefined)
      throw new Error('only root can mount the small disk of the spool');
    const spool = disk?.folder ?? (await mkdtemp(join(tmpdir(), 'offhook-spool-')));
    const phones = await MarkedPhones.start();
    const s3 = await startTestS3();
    const { endpoint = '', accessKeyId, secretAccessKey } = s3.target;
    const proxy = new BucketProxy(endpoint);
    const cluster = await startCluster({
      ...{ databaseUrl, voices: phones },
      variables: {
        ...{ NODE_LEASE_MS: String(leaseMs), LOG_LEVEL: 'warn' },
        ...{ RECORDING_STORE: 's3://recordings/calls', RECORDING_SPOOL: spool },
        ...{ AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey },
      },
    });
    const world = new RecordingWorld({ cluster, phones, proxy, s3, spool, disk });
    try {
      for (let index = 0; index < gateways; index += 1) await world.startNode(`node-${index + 1}`);
      await world.#prepare();
      return world;
    } catch (error) {
      await world[Symbol.asyncDispose]();
      throw error;
    }
  }

  async startNode(name: string): Promise<void> {
    const S3_ENDPOINT = await this.parts.proxy.endpointFor(name);
    this.nodes.set(name, await this.parts.cluster.startNode(name, { S3_ENDPOINT }));
  }

  /** Kills a gateway without a warning. */
  async kill(name: string): Promise<void> {
    const node = this.nodes.get(name);
    this.nodes.delete(name);
    await node?.kill();
  }

  /** Sends a request until a gateway accepts it. The phone hangs up when it has talked. */
  async place({ index, talkMs, isRecorded, isEncrypted }: CallWish): Promise<void> {
    const number = numberFor('scripted', 0, index);
    const { scripts } = this.parts.cluster.farEnd;
    const answered = new Promise<void>((resolve) => {
      const voice = { mulaw: Buffer.alloc(0) };
      scripts.set(number, { ringMs: () => ringMs, voice, talkMs, onAnswered: resolve });
    });
    const { receiver } = this.parts.cluster;
    const recording = {
      notifyurl: `${receiver.url}/recording`,
      ...(isEncrypted && { key: keyName }),
    };
    const body = {
      ...{ target: `tel:+${number}`, notifyurl: receiver.url, machineDetection: 'disabled' },
      ...(isRecorded && { recording }),
    };
    const callId = await this.#dial(body, index);
    this.calls.push({ number, callId, isRecorded, isEncrypted });
    this.#keep(answered.then(() => this.#play(callId)));
  }

  farCall(number: string): FarCall | undefined {
    return this.parts.cluster.farEnd.calls.find((call) => call.number === number);
  }

  /** Waits for the commands that were sent. */
  async calm(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { cluster, phones, proxy, s3, spool, disk } = this.parts;
    await cluster[Symbol.asyncDispose]();
    await phones[Symbol.asyncDispose]();
    await proxy[Symbol.asyncDispose]();
    await s3.stop();
    if (disk === undefined) await rm(spool, { recursive: true, force: true });
    else await disk.remove();
  }

  async #prepare(): Promise<void> {
    const [node] = this.nodes.values();
    await node?.dialer.addSound(soundName, makeWav({ samples: [markedSound()] }));
    const folder = await mkdtemp(join(tmpdir(), 'offhook-key-'));
    const pem = join(folder, 'public.pem');
    await writeFile(pem, this.#publicPem);
    const { offhook } = this.parts.cluster;
    await offhook('keys', 'add', keyName, '--account', 'test', '--public-key', pem);
    await rm(folder, { recursive: true });
  }

  async #dial(body: Record<string, unknown>, index: number): Promise<string> {
    for (let tries = 0; tries < mostTries; tries += 1) {
      const nodes = [...this.nodes.values()];
      const answer = await nodes[(index + tries) % Math.max(1, nodes.length)]?.dialer
        .post(body, { 'idempotency-key': `recording-${index}` })
        .catch(() => undefined);
      if (answer?.status === 200) return (answer.body as { callId: string }).callId;
      if (answer !== undefined && answer.status < 500 && answer.status !== 429)
        throw new Error(`dial-out: ${answer.status} ${JSON.stringify(answer.body)}`);
      await pause(200);
    }
    throw new Error('no gateway accepts a call');
  }

  /** A gateway refuses the command until it has stored the answer. */
  async #play(callId: string): Promise<void> {
    const command = { command: 'play', sound: `sound:${soundName}`, loop: true, id: 'play' };
    for (let tries = 0; tries < 10; tries += 1) {
      await pause(playsAfterMs);
      const [node] = this.nodes.values();
      const answer = await node?.dialer.command(callId, command).catch(() => undefined);
      if (answer?.status === 202 || answer?.status === 404) return;
    }
  }

  #keep(work: Promise<void>): void {
    const kept = work.finally(() => this.#underWay.delete(kept));
    this.#underWay.add(kept);
  }
}
