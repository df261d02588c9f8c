// The recorded run and the live run have different names for the same things: transaction ids,
// Call-IDs, tags, branches, CSeq numbers, ports. This class keeps a one-to-one table between the
// two. It learns a name when an engine first uses it.

import { RECORDED_SIP_PORT } from './recording.ts';

/** The places of names that an engine makes up. Everything else in a message must be equal. */
const NAME_PLACES = /(?<=tag=|branch=)[^;>\s|,"]+/g;
const TIME = /^\d\d:\d\d:\d\d\.\d{6}$/;
/**
 * drachtio had the default port, which a Via may omit. The live engine's Via must state its port.
 */
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

  /**
   * Translates text of the client or the far end for the live run. The engine must repeat the names
   * in it unchanged.
   */
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

  /** Replaces the ports in the engine's text by those of the recording. */
  portsToRecorded(live: string): string {
    return replacePorts(live, this.#recordedPorts).replace(SPELT_OUT_VIA, '$1');
  }

  /** Whether both texts are equal apart from names. Learns names that are new. */
  same(recorded: string, live: string): boolean {
    if (TIME.test(recorded)) return TIME.test(live);
    const recordedNames = recorded.match(NAME_PLACES) ?? [];
    const liveNames = live.match(NAME_PLACES) ?? [];
    return (
      recorded.replace(NAME_PLACES, '*') === live.replace(NAME_PLACES, '*') &&
      recordedNames.every((name, index) => this.sameName(name, liveNames[index] ?? ''))
    );
  }

  /** Like `same`, for a text that is a single name, such as a Call-ID or a transaction id. */
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

  /**
   * Whether the live text has another given or known name than the recorded one. Learns nothing.
   */
  contradicts(recorded: string, live: string): boolean {
    const liveNames = live.match(NAME_PLACES) ?? [];
    return (recorded.match(NAME_PLACES) ?? []).some((name, index) => {
      const known =
        this.#liveByRecorded.get(name) ?? (this.#given.includes(name) ? name : undefined);
      return known !== undefined && known !== liveNames[index];
    });
  }

  /**
   * Compares CSeq values. A caller's small numbers are repeated. The engine's own numbers may start
   * anywhere, but must then count alike.
   */
  sameSequence(recordedCallId: string, recorded: string, live: string): boolean {
    // `RAck: 1 4711 INVITE` begins with the number of the response, which the far end chose.
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

/**
 * Replaces ports. A port is a number after the loopback address or after `rport=`. The same digits
 * elsewhere are something else.
 */
function replacePorts(text: string, ports: ReadonlyMap<number, number>): string {
  return text.replace(/(?<=127\.0\.0\.1[:|]|rport=)\d+/g, (port) =>
    String(ports.get(Number(port)) ?? port),
  );
}
