// A DNS server on a UDP port of loopback, which answers from the test's own records. It can also
// stay silent, refuse, and send whatever bytes a test wants.

import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { isIP } from 'node:net';

type Ttl = { readonly ttlS?: number };
export type DnsRecord = Ttl &
  (
    | { readonly type: 'A' | 'AAAA'; readonly address: string }
    | {
        readonly type: 'SRV';
        readonly priority: number;
        readonly weight: number;
        readonly port: number;
        readonly target: string;
      }
    | {
        readonly type: 'NAPTR';
        readonly order: number;
        readonly preference: number;
        readonly flags?: string;
        readonly service: string;
        readonly regexp?: string;
        readonly replacement: string;
      }
  );

export type DnsQuestion = { readonly name: string; readonly type: DnsRecord['type'] | 'other' };

/** `silent`: no answer at all. A buffer is sent as it is, after the question's id. */
type Behaviour = 'silent' | 'servfail' | Buffer;

const typeNumbers = { A: 1, AAAA: 28, SRV: 33, NAPTR: 35 } as const;

export class DnsServer implements AsyncDisposable {
  /** The questions so far. */
  readonly questions: DnsQuestion[] = [];
  readonly #socket: Socket = createSocket('udp4');
  readonly #zone = new Map<string, readonly DnsRecord[]>();
  /** How to answer in place of the records. By `type name`, or `*` for every question. */
  readonly #behaviours = new Map<string, Behaviour>();

  static async start(zone: Readonly<Record<string, readonly DnsRecord[]>> = {}) {
    const server = new DnsServer();
    for (const [name, records] of Object.entries(zone)) server.set(name, records);
    server.#socket.on('message', (query, from) => {
      const answer = server.#answer(query);
      if (answer !== undefined) server.#socket.send(answer, from.port, from.address);
    });
    server.#socket.bind(0, '127.0.0.1');
    await once(server.#socket, 'listening');
    return server;
  }

  /** As in DNS_SERVERS. */
  get address(): string {
    return `127.0.0.1:${this.#socket.address().port}`;
  }

  set(name: string, records: readonly DnsRecord[]): void {
    this.#zone.set(name.toLowerCase(), records);
  }

  remove(name: string): void {
    this.#zone.delete(name.toLowerCase());
  }

  /** @param question `SRV _sip._udp.carrier.test`, or `*` for all */
  behave(question: string, behaviour: Behaviour | undefined): void {
    if (behaviour === undefined) this.#behaviours.delete(question);
    else this.#behaviours.set(question, behaviour);
  }

  asked(type: DnsQuestion['type']): readonly string[] {
    return this.questions.filter((question) => question.type === type).map(({ name }) => name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close();
    await once(this.#socket, 'close');
  }

  #answer(query: Buffer): Buffer | undefined {
    const { name, end, typeNumber } = readQuestion(query);
    const type = (Object.keys(typeNumbers) as (keyof typeof typeNumbers)[]).find(
      (candidate) => typeNumbers[candidate] === typeNumber,
    );
    this.questions.push({ name, type: type ?? 'other' });
    const behaviour =
      this.#behaviours.get(`${type} ${name.toLowerCase()}`) ?? this.#behaviours.get('*');
    if (behaviour === 'silent') return undefined;
    const id = query.subarray(0, 2);
    const question = query.subarray(12, end);
    if (Buffer.isBuffer(behaviour)) return Buffer.concat([id, behaviour]);
    const records = this.#zone.get(name.toLowerCase());
    const found = (records ?? []).filter((record) => record.type === type);
    const code = behaviour === 'servfail' ? 2 : records === undefined ? 3 : 0;
    const answers = behaviour === 'servfail' ? [] : found.map(encodeRecord);
    // QR, AA, RD and RA, then the code and the four counts.
    const header = [0x85, 0x80 | code, 0, 1, 0, answers.length, 0, 0, 0, 0];
    return Buffer.concat([id, Buffer.from(header), question, ...answers]);
  }
}

function readQuestion(query: Buffer) {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += length + 1;
  }
  return { name: labels.join('.'), typeNumber: query.readUInt16BE(at + 1), end: at + 5 };
}

/** The name is a pointer to the question's, at byte 12 (RFC 1035, 4.1.4). */
function encodeRecord(record: DnsRecord): Buffer {
  const data = encodeData(record);
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc0_0c, 0);
  head.writeUInt16BE(typeNumbers[record.type], 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(record.ttlS ?? 60, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

function encodeData(record: DnsRecord): Buffer {
  switch (record.type) {
    case 'A':
      return Buffer.from(record.address.split('.').map(Number));
    case 'AAAA':
      return ipv6Bytes(record.address);
    case 'SRV':
      return Buffer.concat([
        numbers(record.priority, record.weight, record.port),
        encodeName(record.target),
      ]);
    case 'NAPTR':
      return Buffer.concat([
        numbers(record.order, record.preference),
        text(record.flags ?? 's'),
        text(record.service),
        text(record.regexp ?? ''),
        encodeName(record.replacement),
      ]);
  }
}

function numbers(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 2);
  for (const [index, value] of values.entries()) bytes.writeUInt16BE(value, index * 2);
  return bytes;
}

function text(value: string): Buffer {
  return Buffer.concat([Buffer.from([value.length]), Buffer.from(value, 'latin1')]);
}

function encodeName(name: string): Buffer {
  const labels = name.split('.').filter((label) => label !== '');
  return Buffer.concat([...labels.map(text), Buffer.from([0])]);
}

function ipv6Bytes(address: string): Buffer {
  if (isIP(address) !== 6) throw new Error(`${address} is no IPv6 address`);
  const [head = '', tail] = address.split('::');
  const groups = (part: string) => (part === '' ? [] : part.split(':'));
  const after = groups(tail ?? '');
  const before = groups(head);
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0');
  return numbers(...[...before, ...zeros, ...after].map((group) => Number.parseInt(group, 16)));
}
