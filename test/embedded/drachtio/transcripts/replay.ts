// Plays one recorded scenario against a running engine. It sends srf's frames and the far ends'
// packets in the recorded causal order, never by the clock. It compares what the engine sends with
// what drachtio-server sent.

import {
  compareControl,
  compareSip,
  controlLabel,
  type Mismatch,
  plainAnswer,
  toHeader,
} from './comparing.ts';
import {
  type Expectation,
  expectControl,
  expectWire,
  findControl,
  wireBase,
} from './expectations.ts';
import { Naming } from './naming.ts';
import {
  type ControlEvent,
  RECORDED_SIP_PORT,
  type Recording,
  type WireEvent,
} from './recording.ts';
import { settle, until } from './settling.ts';
import {
  type ControlPeer,
  closedPort,
  connectControl,
  openTcpPeer,
  openUdpPeer,
  type WirePeer,
} from './sockets.ts';

/** What the replay needs of an engine. A second `start` after a `stop` uses the same ports. */
export type EngineUnderTest = {
  start(): Promise<{ readonly sipPort: number; readonly controlPort: number }>;
  stop(): Promise<void>;
};

export type Difference = Mismatch & { readonly message: string };

export type ReplayOptions = {
  /**
   * The server's own timers drive this scenario. Repeats are compared loosely, and waits are
   * longer.
   */
  readonly timed: boolean;
  /**
   * Bytes that the recorder missed because they never formed a whole frame. They are sent after a
   * connection's first reply.
   */
  readonly unrecorded?: { readonly connection: number; readonly bytes: string };
  /** Messages that the engine is known not to send. The replay does not wait for them. */
  readonly absent: readonly string[];
  /**
   * Messages that the engine is known to add on a connection. The replay waits for them before the
   * client closes it.
   */
  readonly added: readonly string[];
};

/**
 * The recorder stamps the control connection and the wire separately. A smaller distance says
 * nothing about the order.
 */
const CLOCK_SKEW_MS = 5;
const ANSWER_DEADLINE_MS = 30_000;
const TIMER_DEADLINE_MS = 40_000;

export async function replay(
  recording: Recording,
  engine: EngineUnderTest,
  options: ReplayOptions,
): Promise<Difference[]> {
  const run = new Replay(recording, engine, options);
  try {
    await run.play();
    return run.differences;
  } finally {
    await run.close();
  }
}

class Replay {
  readonly differences: Difference[] = [];
  readonly #recording: Recording;
  readonly #engine: EngineUnderTest;
  readonly #options: ReplayOptions;
  readonly #control: Expectation<ControlEvent>[];
  readonly #wire: Expectation<WireEvent>[];
  readonly #connections = new Map<number, ControlPeer>();
  readonly #closed = new Set<number>();
  readonly #peers = new Map<number, WirePeer>();
  readonly #received = new Map<string, Expectation<WireEvent>>();
  readonly #sentLengths = new Set<number>();
  readonly #arrived: string[] = [];
  #naming = new Naming(new Map());
  #named = false;
  #ports = { sipPort: 0, controlPort: 0 };
  #deadlineMs = ANSWER_DEADLINE_MS;
  #progress = { control: 0, wire: 0 };

  constructor(recording: Recording, engine: EngineUnderTest, options: ReplayOptions) {
    this.#recording = recording;
    this.#engine = engine;
    this.#options = options;
    this.#control = expectControl(recording);
    this.#wire = expectWire(recording);
    if (options.timed) this.#deadlineMs = TIMER_DEADLINE_MS;
  }

  async play(): Promise<void> {
    await this.#openPeers();
    await this.#startEngine();
    await Promise.all([
      this.#playTrack('control', this.#control, (event) => this.#actControl(event)),
      this.#playTrack('wire', this.#wire, async (event) => this.#actWire(event)),
    ]);
    await settle(this.#ports);
    if (this.#options.timed) this.#reportRepeats();
  }

  async close(): Promise<void> {
    for (const connection of this.#connections.values()) connection.close();
    for (const peer of this.#peers.values()) await peer.close();
    await this.#engine.stop();
  }

  async #openPeers(): Promise<void> {
    for (const [port, transport] of this.#recording.peers) {
      const open = transport === 'tcp' ? openTcpPeer : openUdpPeer;
      this.#peers.set(port, await open((text) => this.#onWire(port, text)));
    }
  }

  async #startEngine(): Promise<void> {
    this.#ports = await this.#engine.start();
    if (this.#named) return;
    this.#named = true;
    const ports = new Map([[RECORDED_SIP_PORT, this.#ports.sipPort]]);
    for (const [recorded, peer] of this.#peers) ports.set(recorded, peer.port);
    for (const recorded of this.#recording.closedPorts) ports.set(recorded, await closedPort());
    this.#naming = new Naming(ports);
  }

  /**
   * Plays one track in its order. Each input also waits for the events of the other track that
   * clearly came earlier.
   */
  async #playTrack<Event extends ControlEvent | WireEvent>(
    name: 'control' | 'wire',
    track: readonly Expectation<Event>[],
    act: (event: Event) => Promise<void>,
  ): Promise<void> {
    const other = name === 'control' ? this.#wire : this.#control;
    const otherName = name === 'control' ? 'wire' : 'control';
    for (const expectation of track) {
      const { event } = expectation;
      if (event.kind === 'fromEngine' || event.kind === 'engineCloses') {
        await this.#awaitMatch(expectation);
      } else {
        const earlier = other.filter(({ event: { atMs } }) => atMs < event.atMs - CLOCK_SKEW_MS);
        await until(() => this.#progress[otherName] >= earlier.length, TIMER_DEADLINE_MS);
        await act(event);
      }
      this.#progress[name] += 1;
    }
  }

  async #awaitMatch(expectation: Expectation<ControlEvent | WireEvent>): Promise<void> {
    if (this.#options.absent.includes(expectation.label)) return this.#missing(expectation);
    // The number of a timer's repeats is compared at the end, with a tolerance.
    if (this.#options.timed && expectation.repeatOf !== undefined) return;
    if (await until(() => expectation.matched, this.#deadlineMs)) return;
    // One missing message often makes others missing. Waiting for all of them must not take
    // minutes.
    this.#deadlineMs = Math.min(this.#deadlineMs, 300);
    this.#missing(expectation);
  }

  /** Waits for a known addition. Does not wait for other messages. */
  async #untilSent(name: string): Promise<void> {
    if (!this.#options.added.includes(name)) return;
    await until(() => this.#arrived.includes(name), this.#deadlineMs);
  }

  #missing({ label }: { readonly label: string }): void {
    this.differences.push({ message: label, aspect: 'absent', recorded: 'sent', live: 'not sent' });
  }

  async #actControl(event: ControlEvent): Promise<void> {
    switch (event.kind) {
      case 'connect':
        await this.#connect(event.connection);
        return;
      case 'fromClient':
        this.#connections.get(event.connection)?.send(this.#naming.toLive(event.payload));
        return;
      case 'unframed':
        this.#connections.get(event.connection)?.sendRaw(event.bytes);
        return;
      case 'clientCloses': {
        const suffix = ` on connection ${event.connection}`;
        const awaited = this.#options.added.filter((name) => name.endsWith(suffix));
        for (const name of awaited) await this.#untilSent(name);
        this.#closed.add(event.connection);
        this.#connections.get(event.connection)?.close();
        // In the recording, seconds pass before the next input. Here the engine may not have
        // noticed the close yet.
        await this.#untilSent('wire CANCEL');
        return;
      }
      case 'engineDies':
        await this.#engine.stop();
        return;
      case 'engineReturns':
        await this.#startEngine();
        return;
      case 'fromEngine':
      case 'engineCloses':
        // The replay waits for the engine's own events and does not play them.
        return;
      default:
        event satisfies never;
    }
  }

  async #connect(connection: number): Promise<void> {
    const peer = await connectControl(
      this.#ports.controlPort,
      (payload) => this.#onControl(connection, payload),
      () => this.#onControlClosed(connection),
    );
    this.#connections.set(connection, peer);
  }

  #actWire(event: WireEvent): void {
    const text = this.#naming.toLive(event.text);
    this.#sentLengths.add(Buffer.byteLength(text));
    this.#peers.get(event.peer)?.send(text, this.#ports.sipPort);
  }

  #onControl(connection: number, payload: string): void {
    const expectation = findControl(this.#control, connection, payload);
    if (expectation === undefined) {
      this.#extra(`${controlLabel(payload)} on connection ${connection}`, payload);
      return;
    }
    this.#reportDisorder(expectation, connection);
    const { payload: recorded } = expectation.event;
    this.#report(expectation, compareControl(recorded, payload, this.#naming, this.#sentLengths));
    const { unrecorded } = this.#options;
    if (unrecorded?.connection !== connection) return;
    this.#connections.get(connection)?.sendRaw(unrecorded.bytes);
  }

  #onControlClosed(connection: number): void {
    if (this.#closed.has(connection)) return;
    this.#closed.add(connection);
    const expectation = this.#control.find(
      ({ event }) => event.kind === 'engineCloses' && event.connection === connection,
    );
    if (expectation === undefined) this.#extra(`close on connection ${connection}`, '');
    else expectation.matched = true;
  }

  #onWire(peer: number, text: string): void {
    const first = this.#received.get(`${peer} ${text}`);
    const base = wireBase(text);
    const expectation = this.#wire.find(
      ({ event, matched, repeatOf, base: other }) =>
        !matched &&
        event.kind === 'fromEngine' &&
        event.peer === peer &&
        repeatOf === first &&
        other === base &&
        !this.#naming.contradicts(toHeader(event.text), toHeader(text)),
    );
    if (expectation === undefined) {
      this.#onUnexpectedWire(peer, text, first !== undefined ? `${base} again` : base);
      return;
    }
    if (first === undefined) this.#received.set(`${peer} ${text}`, expectation);
    const live = this.#naming.portsToRecorded(text);
    this.#report(expectation, compareSip(expectation.event.text, live, this.#naming));
  }

  #onUnexpectedWire(peer: number, text: string, label: string): void {
    const repeated = label.endsWith(' again');
    if (this.#options.timed && repeated) return;
    this.#extra(label, text);
    const answer = plainAnswer(text);
    if (answer !== undefined) this.#peers.get(peer)?.send(answer, this.#ports.sipPort);
  }

  #report(expectation: { label: string; matched: boolean }, found: readonly Mismatch[]): void {
    for (const mismatch of found)
      this.differences.push({ message: expectation.label, ...mismatch });
    expectation.matched = true;
  }

  /** Reports a frame that comes before an earlier one of the same connection. */
  #reportDisorder(expectation: Expectation<ControlEvent>, connection: number): void {
    const earlier = this.#control
      .slice(0, this.#control.indexOf(expectation))
      .find(
        ({ event, matched, label }) =>
          !matched &&
          event.kind === 'fromEngine' &&
          event.connection === connection &&
          !this.#options.absent.includes(label),
      );
    if (earlier === undefined) return;
    const aspect = `before ${earlier.label}`;
    this.differences.push({
      message: expectation.label,
      aspect,
      recorded: 'after',
      live: 'before',
    });
  }

  #extra(message: string, live: string): void {
    this.#arrived.push(message);
    this.differences.push({ message, aspect: 'added', recorded: 'not sent', live });
  }

  /**
   * Expects at least two thirds of the repeats. The last repeat falls close to the transaction's
   * end, and a busy machine delays some.
   */
  #reportRepeats(): void {
    const repeats = this.#wire.filter(
      ({ event, repeatOf }) => event.kind === 'fromEngine' && repeatOf !== undefined,
    );
    const missing = repeats.filter(({ matched }) => !matched);
    if (missing.length > repeats.length / 3)
      for (const expectation of missing) this.#missing(expectation);
  }
}
