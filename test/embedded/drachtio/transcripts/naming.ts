// The recorded run and the live one give other names to the same things: transaction ids, Call-IDs, tags, branches, CSeq
// numbers, ports. This keeps the one-to-one table between the two, learnt where the engine first utters a name.

import { RECORDED_SIP_PORT } from './recording.ts';

/** What an engine makes up lies at these places; everything else in a message must be equal to the letter. */
const NAME_PLACES = /(?<=tag=|branch=)[^;>\s|,"]+/g;
const TIME = /^\d\d:\d\d:\d\d\.\d{6}$/;
/** drachtio had the default port, which a Via need not name; the live engine's must be named. */
const DEFAULT_PORT_VIA = /(SIP\/2\.0\/(?:UDP|TCP) 127\.0\.0\.1)(?=;)/g;
const SPELT_OUT_VIA = new RegExp(
  `(SIP/2\\.0/(?:UDP|TCP) 127\\.0\\.0\\.1):${RECORDED_SIP_PORT}(?=;)`,
  'g',
);
const BRANCH_COOKIE = 'z9hG4bK';

export class Naming {
  readonly #liveByRecorded = new Map<string, string>();
  readonly #recordedByLive = new Map<string, string>();
  readonly #sequenceOffsets = new Map<string, number>();
  readonly #livePorts: ReadonlyMap<number, number>;
  readonly #recordedPorts: ReadonlyMap<number, number>;
  #given = '';

  constructor(livePorts: ReadonlyMap<number, number>) {
    this.#livePorts = livePorts;
    this.#recordedPorts = new Map([...livePorts].map(([recorded, live]) => [live, recorded]));
  }

  /** What the client or the far end says: names in it are theirs, and the engine must repeat them unchanged. */
  toLive(recorded: string): string {
    this.#given += `\n${recorded}`;
    const withPorts = recorded.replace(DEFAULT_PORT_VIA, `$1:${RECORDED_SIP_PORT}`);
    let text = replacePorts(withPorts, this.#livePorts);
    const sequenceOffset = [...this.#sequenceOffsets].find(([callId]) => recorded.includes(callId));
    if (sequenceOffset !== undefined) {
      text = text.replace(/\b\d{7,}(?= +[A-Z]+\r\n)/g, (number) =>
        String(Number(number) + sequenceOffset[1]),
      );
    }
    for (const [name, live] of this.#liveByRecorded) text = text.replaceAll(name, live);
    return text;
  }

  /** The engine's words, with the ports of the recording. */
  portsToRecorded(live: string): string {
    return replacePorts(live, this.#recordedPorts).replace(SPELT_OUT_VIA, '$1');
  }

  /** True if both texts say the same, names aside; a name met for the first time is learnt. */
  same(recorded: string, live: string): boolean {
    if (TIME.test(recorded)) return TIME.test(live);
    const recordedNames = recorded.match(NAME_PLACES) ?? [];
    const liveNames = live.match(NAME_PLACES) ?? [];
    return (
      recorded.replace(NAME_PLACES, '*') === live.replace(NAME_PLACES, '*') &&
      recordedNames.every((name, index) => this.sameName(name, liveNames[index] ?? ''))
    );
  }

  /** The same for a text that is one name as a whole, such as a Call-ID or a transaction id. */
  sameName(recorded: string, live: string): boolean {
    const known = this.#liveByRecorded.get(recorded);
    if (known !== undefined) return known === live;
    if (this.#given.includes(recorded)) return recorded === live;
    if (this.#recordedByLive.has(live) || live.length === 0) return false;
    if (recorded.startsWith(BRANCH_COOKIE) && !live.startsWith(BRANCH_COOKIE)) return false;
    this.#liveByRecorded.set(recorded, live);
    this.#recordedByLive.set(live, recorded);
    return true;
  }

  /** True if the live text bears another given or known name than the recorded one; learns nothing. */
  contradicts(recorded: string, live: string): boolean {
    const liveNames = live.match(NAME_PLACES) ?? [];
    return (recorded.match(NAME_PLACES) ?? []).some((name, index) => {
      const known =
        this.#liveByRecorded.get(name) ?? (this.#given.includes(name) ? name : undefined);
      return known !== undefined && known !== liveNames[index];
    });
  }

  /** CSeq values: a caller's small ones are repeated, the engine's own start anywhere but then count alike. */
  sameSequence(recordedCallId: string, recorded: string, live: string): boolean {
    // `RAck: 1 4711 INVITE` has the number of the response in front, which is the far end's.
    const [, front, number, method] = /^(\d+ )?(\d+) (\w+)$/.exec(recorded) ?? [];
    const [, liveFront, liveNumber, liveMethod] = /^(\d+ )?(\d+) (\w+)$/.exec(live) ?? [];
    if (method !== liveMethod || front !== liveFront) return false;
    if ((number ?? '').length < 7) return number === liveNumber;
    const offset = Number(liveNumber) - Number(number);
    const known = this.#sequenceOffsets.get(recordedCallId);
    if (known === undefined) this.#sequenceOffsets.set(recordedCallId, offset);
    return known === undefined || known === offset;
  }
}

/** A port is a number after the loopback address or after `rport=`; the same digits elsewhere are something else. */
function replacePorts(text: string, ports: ReadonlyMap<number, number>): string {
  return text.replace(/(?<=127\.0\.0\.1[:|]|rport=)\d+/g, (port) =>
    String(ports.get(Number(port)) ?? port),
  );
}
