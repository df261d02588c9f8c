// Reads a recorded scenario (test/fixtures/drachtio) into two tracks of events, one of the control
// connection and one of the wire. Each track is in the recorded order. This file knows the
// recorder's file format, and nothing of what the messages mean.

import { readFileSync } from 'node:fs';

/** drachtio's SIP port in the recordings. */
export const RECORDED_SIP_PORT = 5060;

export type ControlEvent = { readonly atMs: number } & (
  | {
      readonly kind: 'connect' | 'clientCloses' | 'engineCloses' | 'engineDies' | 'engineReturns';
      readonly connection: number;
    }
  | {
      readonly kind: 'fromClient' | 'fromEngine';
      readonly connection: number;
      readonly payload: string;
    }
  | { readonly kind: 'unframed'; readonly connection: number; readonly bytes: string }
);

export type WireEvent = {
  readonly atMs: number;
  readonly kind: 'fromPeer' | 'fromEngine';
  readonly peer: number;
  readonly text: string;
};

export type Recording = {
  readonly control: readonly ControlEvent[];
  readonly wire: readonly WireEvent[];
  /**
   * Recorded ports of far ends that listened, with their transport. A port that is missing here was
   * closed.
   */
  readonly peers: ReadonlyMap<number, 'udp' | 'tcp'>;
  readonly closedPorts: readonly number[];
};

const NOTES: Readonly<
  Record<string, 'connect' | 'clientCloses' | 'engineCloses' | 'engineDies' | 'engineReturns'>
> = {
  '-- client connected': 'connect',
  'srf -> drachtio side closed': 'clientCloses',
  'drachtio -> srf side closed': 'engineCloses',
  '-- proxy port closed (drachtio down)': 'engineDies',
  '-- proxy port open again': 'engineReturns',
};

export function readRecording(folder: URL, scenario: string): Recording {
  const control = parseControl(readFileSync(new URL(`${scenario}.control.txt`, folder), 'utf8'));
  const wire = parseWire(readFileSync(new URL(`${scenario}.sip.txt`, folder), 'utf8'));
  return { control, ...wire };
}

function parseControl(text: string): ControlEvent[] {
  const events: ControlEvent[] = [];
  for (const { line, block } of readItems(text, / (srf -> drachtio|drachtio -> srf)$/)) {
    const [, time, connection, what = ''] =
      /^(\d\d:\d\d:\d\d\.\d+) (?:\[conn (\d+)\] )?(.*)$/.exec(line) ?? [];
    if (time === undefined) continue;
    const at = { atMs: milliseconds(time), connection: Number(connection ?? 0) };
    if (block === undefined) addNote(events, at.atMs, at.connection, what);
    else {
      const kind = what.startsWith('srf') ? 'fromClient' : 'fromEngine';
      events.push({ ...at, kind, payload: decodeFrame(block.join('\n')) });
    }
  }
  return events;
}

/**
 * Yields the heading lines. A line that matches `headsBlock` comes with the lines that follow it,
 * up to the line of dashes.
 */
function* readItems(
  text: string,
  headsBlock: RegExp,
): Generator<{ readonly line: string; readonly block?: readonly string[] }> {
  const lines = text.split('\n');
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index] ?? '';
    if (headsBlock.test(line)) {
      const end = lines.indexOf('----', index);
      yield { line, block: lines.slice(index + 1, end) };
      index = end;
    } else {
      yield { line };
    }
  }
}

function addNote(events: ControlEvent[], atMs: number, connection: number, what: string): void {
  const unframed = /UNFRAMED (.*)$/.exec(what)?.[1];
  if (unframed !== undefined) {
    events.push({ atMs, kind: 'unframed', connection, bytes: unframed });
    return;
  }
  const kind = NOTES[what];
  if (kind === undefined) return;
  // A side that only answers the other side's close does nothing that can be replayed.
  const isClose = kind === 'clientCloses' || kind === 'engineCloses';
  if (isClose && !isOpen(events, connection)) return;
  // The recorder notes a death after the close that it caused. Here the cause comes first.
  const caused =
    kind === 'engineDies' && events.at(-1)?.kind === 'engineCloses' ? events.pop() : undefined;
  events.push({ atMs, kind, connection });
  if (caused !== undefined) events.push(caused);
}

function isOpen(events: readonly ControlEvent[], connection: number): boolean {
  return !events.some(
    (event) =>
      (event.kind === 'clientCloses' || event.kind === 'engineCloses') &&
      event.connection === connection,
  );
}

/**
 * The recorder writes a frame as its length, `#`, and the payload. It spells out CR and LF in the
 * payload and adds a line break after them.
 */
function decodeFrame(block: string): string {
  const [, length, escaped] = /^(\d+)#([\s\S]*)$/.exec(block) ?? [];
  const payload = (escaped ?? '').replaceAll('\\r\\n\n', '\r\n');
  if (Buffer.byteLength(payload) !== Number(length)) {
    throw new Error(
      `A recorded frame of ${length} bytes was read as ${Buffer.byteLength(payload)}.`,
    );
  }
  return payload;
}

function parseWire(text: string): Omit<Recording, 'control'> {
  const records = readRecords(text);
  const having = (flags: string) => records.filter((record) => record.flags === flags);
  const unreachable = records.filter(
    ({ transport, from }) => transport === 'ICMP' && from === RECORDED_SIP_PORT,
  );
  const enginePorts = new Set([RECORDED_SIP_PORT, ...having('S').map(({ from }) => from)]);
  const closedPorts = new Set([
    ...unreachable.map(({ to }) => to),
    ...having('AR').map(({ from }) => from),
  ]);
  // A message to a closed port did not arrive, then or now. On starting, drachtio sends the word
  // TEST to itself.
  const wire = records
    .filter(({ block, from, to }) => block !== undefined && from !== to && !closedPorts.has(to))
    .map(({ atMs, from, to, block = '' }): WireEvent => {
      const fromEngine = enginePorts.has(from);
      const [kind, peer] = fromEngine
        ? (['fromEngine', to] as const)
        : (['fromPeer', from] as const);
      return { atMs, kind, peer, text: block };
    });
  const tcpPorts = new Set(having('AS').map(({ from }) => from));
  const peers = new Map(
    wire.map(({ peer }) => [peer, tcpPorts.has(peer) ? 'tcp' : 'udp'] as const),
  );
  return { wire, peers, closedPorts: [...closedPorts] };
}

type WireRecord = {
  readonly atMs: number;
  readonly transport: string;
  readonly from: number;
  readonly to: number;
  readonly flags?: string;
  readonly block?: string;
};

function readRecords(text: string): WireRecord[] {
  const records: WireRecord[] = [];
  for (const { line, block } of readItems(text, / (UDP|TCP) \d+ -> \d+$/)) {
    const [, time, transport, from, to, flags] =
      /^([\d:.]+) (UDP|TCP|ICMP).*? (\d+) -> (\d+)\)?(?: (\w+))?$/.exec(line) ?? [];
    if (time === undefined || transport === undefined) continue;
    records.push({
      atMs: milliseconds(time),
      transport,
      from: Number(from),
      to: Number(to),
      ...(flags === undefined ? {} : { flags }),
      ...(block === undefined ? {} : { block: block.join('\r\n') }),
    });
  }
  return records;
}

function milliseconds(time: string): number {
  const [hours = 0, minutes = 0, seconds = 0] = time.split(':').map(Number);
  return Math.round((hours * 3600 + minutes * 60 + seconds) * 1000);
}
